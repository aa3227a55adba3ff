"""Your own texts: any csv with a text and a label in each row can be learnt, explained and audited.

python examples/plot_own_csv.py
"""

# %% A file as one would have it; this one is made up on the spot.
import csv
import random
import tempfile
from pathlib import Path

import assay

draw = random.Random(0)
GOOD, BAD = ["bright", "kind", "fresh", "clean"], ["rude", "stale", "dirty", "slow"]
PLACES = ["The room", "The kitchen", "The waiter", "Our table", "The soup", "The garden"]
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "reviews.csv"
with path.open("w", newline="", encoding="utf-8") as file:
    rows = csv.writer(file)
    rows.writerow(["review", "stars"])
    for _ in range(600):
        stars = draw.choice(["one star", "five stars"])
        words = draw.sample(GOOD if stars == "five stars" else BAD, 2)
        first, second = draw.sample(PLACES, 2)
        rows.writerow(
            [f"{first} was {words[0]} and {second.lower()} seemed {words[1]}, on {draw.randint(1, 9)} May.", stars]
        )

# %% Columns with usual names are found; others are named with assay.data.columns.Columns.
corpus = assay.corpus(str(path))
print(f"{len(corpus.train)} texts to learn from, {len(corpus.test)} to test on: {', '.join(corpus.classes)}")
model = assay.train(corpus, encoder="cnn", embedding=32, hidden=16)

# %% One text, and then all that the model has not seen.
print(assay.explain(model, "The soup was stale but the garden seemed bright.", ["attention", "leave_one_out"]))
result = assay.audit(model, path, audits=["agreement", "erasure"])
print(result)

# %% The report, and what to keep for 'assay report', 'assay figures' and 'assay serve'.
result.report("own-csv.html")
result.save("own-csv")
folder.cleanup()

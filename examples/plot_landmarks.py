"""Because it reminds me of: a classifier that answers by likeness to training texts, and names them.

python examples/plot_landmarks.py
"""

# %% A classifier over the likeness to 100 of the training texts.
from pathlib import Path

import altair as alt
import numpy as np

import assay
from assay.influence.landmark_classifier import LandmarkRecipe, train
from assay.influence.landmark_kernels import Spectrum
from assay.influence.landmarks import because, faithfulness, influence
from assay.models.config import Training
from assay.report.figures import save

corpus = assay.corpus("planted:keyword")
known, unseen = corpus.train[:1000], corpus.test[:200]
recipe = LandmarkRecipe((Spectrum(),), landmarks=100, training=Training(epochs=20, learning_rate=3e-3))
model = train(recipe, [each.text for each in known], np.array([each.label for each in known]), corpus.classes)
texts = [each.text for each in unseen]
right = model.logits(texts).argmax(-1).numpy() == [each.label for each in unseen]
print(f"{right.mean():.0%} of {len(unseen)} unseen texts are answered rightly.")

# %% Why, in a sentence; and whether the texts that it names matter.
print(texts[0])
print(because(model, texts[0], contrast=True))
found = faithfulness(model, texts)
print(
    f"Without the text that is named, the answer leads by {found.named:.2f} less; "
    f"without one at random, by {found.chance:.2f}; without the most alike, by {found.alike:.2f}."
)

# %% As a figure: the training texts that the answer comes from most, and those that speak against it.
parts = -influence(model, texts[:1], target="margin").scores[0]
order = np.argsort(parts)
rows = [
    {"part": float(parts[place]), "text": known[place].text, "class": corpus.classes[known[place].label]}
    for place in [*order[:-7:-1], *order[5::-1]]
]
bars = alt.Chart(alt.Data(values=rows), width=240).mark_bar()
labels = alt.Axis(labelLimit=520)
figure = bars.encode(
    x=alt.X("part:Q", title="part of the lead"),
    y=alt.Y("text:N", sort=None, title=None, axis=labels),
    color=alt.Color("class:N", title="class"),
)
save(figure, Path("landmarks.svg"))

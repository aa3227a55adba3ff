"""Another seed, another explanation? Two audits side by side, and which differences exceed noise.

python examples/plot_two_seeds.py
"""

# %% The same corpus and the same network, started from two seeds.
from pathlib import Path

import assay
from assay.grading.differences import differences
from assay.report.compare import render

corpus = assay.corpus("planted:majority")
explainers = ["attention", "gradient", "integrated_gradients", "leave_one_out", "random"]
runs = {}
for seed in (0, 1):
    model = assay.train(corpus, encoder="gru", embedding=32, hidden=16, epochs=3, seed=seed)
    runs[f"seed {seed}"] = assay.audit(model, corpus, explainers, audits=["truth"], limit=100).record

# %% The differences that 100 texts cannot make by chance.
comparison = differences(runs)
print(f"{len(comparison.exceeding)} of {len(comparison.differences)} differences exceed noise")
for found in comparison.exceeding:
    contrast = found.contrast
    print(f"{found.subject}, {found.quantity.title}: {contrast.gap:+.3f} ({contrast.low:+.3f} to {contrast.high:+.3f})")

# %% The whole comparison as one offline page; 'assay report A B' writes the same from folders.
Path("two-seeds.html").write_text(render(runs), encoding="utf-8")

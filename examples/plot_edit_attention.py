"""Attention under your own hands: other weights, the same answer? The page of 'assay serve' does the same with a mouse.

python examples/plot_edit_attention.py
"""

# %% A small model, and one text under it.
from pathlib import Path

import altair as alt

import assay
from assay.report.figures import save

corpus = assay.corpus("planted:majority")
model = assay.train(corpus, encoder="gru", embedding=32, hidden=16, epochs=3)
text = min((example.text for example in corpus.test), key=len)

# %% Each act gives the weights that were used and the answer under them.
acts = {
    "as it is": "observed",
    "the same on every word": "uniform",
    "furthest with the same answer": "furthest",
    "without as few words as can be": "flip",
}
found = {name: assay.attend(model, text, act).answer for name, act in acts.items()}
for name, each in found.items():
    print(f"{name}: {each['predicted_after']}, moved by {each['tvd']:.3f} (TVD). {each['note']}")

# %% As a figure: the same words, other weights.
rows = [
    {"attention": name, "word": f"{place} {word}", "weight": weight}
    for name, each in found.items()
    for place, (word, weight) in enumerate(zip(each["items"], each["weights"], strict=True))
]
words = alt.X("word:N", sort=None, title=None, axis=alt.Axis(labelAngle=-45))
bars = alt.Chart(alt.Data(values=rows), height=70, width=480).mark_bar()
titles = alt.Header(title=None, labelOrient="top", labelAnchor="start", labelFontSize=12)
weights = alt.Y("weight:Q", title=None, axis=alt.Axis(values=[0, 0.5, 1]))
panels = alt.Facet("attention:N", sort=list(acts), header=titles, columns=1)
save(bars.encode(x=words, y=weights, facet=panels), Path("edit-attention.svg"))

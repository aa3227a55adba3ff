"""Which training texts made the model decide so, which of their words made it look at a word, and who is mislabelled?

python examples/plot_influence.py
"""

# %% A small model whose training is known.
import assay
from assay.data.examples import thinned

corpus = thinned(assay.corpus("planted:keyword"), 400, 0)
model = assay.train(corpus, encoder="lstm", embedding=16, hidden=8, epochs=10, learning_rate=1e-2)

# %% The training texts behind one decision: each score is the predicted change of the log-odds without that text.
found = assay.influence(model, corpus.test[0].text, corpus, top=3)
print(found)

# %% As a page, with the words of training texts that made the model look at the most salient word.
found.report("influence.html")

# %% Training texts whose label the model holds most against.
print(assay.mislabelled(model, corpus, top=5))

"""A model explained and audited in three lines; in a notebook each result shows itself.

python examples/plot_three_lines.py
"""

# %% A corpus whose deciding words are known, and a small model of it.
import assay

corpus = assay.corpus("planted:majority")
model = assay.train(corpus, encoder="gru", embedding=32, hidden=16, epochs=3)

# %% One text, explained in several ways: rows over the same words.
print(assay.explain(model, corpus.test[0].text, ["attention", "gradient", "leave_one_out"]))

# %% All test texts, or some of them: which explanations are true to the model?
result = assay.audit(model, corpus, audits=["truth", "permutation", "adversary"], limit=60)
print(result)

# %% The report as one offline page, and every figure for a paper.
result.report("three-lines.html")
print(*result.figures("three-lines"), sep="\n")

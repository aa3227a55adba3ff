"""Your own explainer beside ours: a function, no registration, and the corpus knows which words decide.

python examples/plot_own_explainer.py
"""

# %% An explainer takes a model, a batch and the class to explain; it returns one score for each word.
from pathlib import Path

import torch

import assay
from assay.report.figures import VERDICT, figure, save


def contrast(model, batch, target):
    """How much each word pushes the class above all others: embedding times the gradient of the margin."""
    with torch.enable_grad():
        x = model.embed(batch).detach().requires_grad_()
        logits = model(x, batch).logits
        chosen = logits.gather(-1, target[:, None])[:, 0]
        others = logits.scatter(-1, target[:, None], -torch.inf).logsumexp(-1)
        (gradient,) = torch.autograd.grad((chosen - others).sum(), x)
    return (x * gradient).sum(-1)


def later_is_more(model, batch, target):
    """A ranking that knows nothing of the model: the later, the more important. It should fail."""
    return torch.arange(1.0, batch.ids.shape[1] + 1).expand(batch.ids.shape)


# %% They stand in the list beside the names of ours.
corpus = assay.corpus("planted:majority")
model = assay.train(corpus, encoder="gru", embedding=32, hidden=16, epochs=3)
explainers = [contrast, later_is_more, "attention", "gradient", "lrp", "leave_one_out", "random"]
print(assay.explain(model, corpus.test[0].text, explainers))

# %% Which of them find the words that decide?
result = assay.audit(model, corpus, explainers, audits=["truth"], limit=200)
print(result)

# %% As a figure.
save(figure(result.record, VERDICT), Path("own-explainer.svg"))

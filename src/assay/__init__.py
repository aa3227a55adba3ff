"""Tests whether an explanation of an NLP model is true to the model.

>>> import assay
>>> corpus = assay.corpus("planted:negation")
>>> model = assay.train(corpus, encoder="lstm")
>>> print(assay.explain(model, "not a good film", ["attention", "leave_one_out"]))
>>> assay.audit(model, corpus.test).report("report.html")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.audits import AUDITS as AUDITS
    from assay.data.corpora import CORPORA as CORPORA
    from assay.data.corpora import corpus as corpus
    from assay.data.examples import Corpus as Corpus
    from assay.data.examples import Example as Example
    from assay.errors import AssayError as AssayError
    from assay.explainers import EXPLAINERS as EXPLAINERS
    from assay.influence import METHODS as METHODS
    from assay.intervene import EDITS as EDITS
    from assay.models.encoders import ENCODERS as ENCODERS
    from assay.records import Record as Record
    from assay.run.rationalising import rationalise as rationalise
    from assay.run.traced import influential as influential
    from assay.run.traced import mislabelled as mislabelled
    from assay.run.verbs import audit as audit
    from assay.run.verbs import explain as explain
    from assay.run.verbs import finetune as finetune
    from assay.run.verbs import load as load
    from assay.run.verbs import train as train
    from assay.types import Batch as Batch
    from assay.types import Edit as Edit
    from assay.types import Explainer as Explainer
    from assay.types import Model as Model
    from assay.types import Output as Output
    from assay.types import PooledModel as PooledModel

__version__ = "0.1.0"

# Loaded when first used, so that `assay --help` need not wait for torch.
_HOME = {
    "AUDITS": "audits",
    "CORPORA": "data.corpora",
    "EDITS": "intervene",
    "ENCODERS": "models.encoders",
    "EXPLAINERS": "explainers",
    "AssayError": "errors",
    "Batch": "types",
    "Corpus": "data.examples",
    "Edit": "types",
    "Example": "data.examples",
    "Explainer": "types",
    "METHODS": "influence",
    "Model": "types",
    "Output": "types",
    "PooledModel": "types",
    "Record": "records",
    "audit": "run.verbs",
    "corpus": "data.corpora",
    "explain": "run.verbs",
    "finetune": "run.verbs",
    "influential": "run.traced",
    "load": "run.verbs",
    "mislabelled": "run.traced",
    "rationalise": "run.rationalising",
    "train": "run.verbs",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'assay' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"assay.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

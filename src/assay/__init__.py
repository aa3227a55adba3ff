"""Tests whether an explanation of an NLP model is true to the model.

>>> import assay
>>> corpus = assay.corpus("planted:negation")
>>> model = assay.train(corpus, encoder="lstm")
>>> print(assay.explain(model, "not a good film", ["attention", "leave_one_out"]))
>>> assay.audit(model, corpus).report("report.html")
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.audits import AUDITS as AUDITS
    from assay.audits.cases import Audit as Audit
    from assay.data.corpora import CORPORA as CORPORA
    from assay.data.corpora import corpus as corpus
    from assay.data.examples import Corpus as Corpus
    from assay.data.examples import Example as Example
    from assay.errors import AssayError as AssayError
    from assay.explainers import EXPLAINERS as EXPLAINERS
    from assay.influence import METHODS as METHODS
    from assay.influence.setting import Method as Method
    from assay.intervene import EDITS as EDITS
    from assay.models.encoders import ENCODERS as ENCODERS
    from assay.rationales.recipes import RECIPES as RECIPES
    from assay.records import Record as Record
    from assay.run.api import finetune as finetune
    from assay.run.api import load as load
    from assay.run.api import train as train
    from assay.run.api import wrap as wrap
    from assay.run.auditing import audit as audit
    from assay.run.explaining import explain as explain
    from assay.run.influencing import influence as influence
    from assay.run.influencing import mislabelled as mislabelled
    from assay.run.probing import probe as probe
    from assay.run.rationalising import rationalise as rationalise
    from assay.run.reporting import report as report
    from assay.run.workbench import attend as attend
    from assay.serve.server import serve as serve
    from assay.study.studying import study as study
    from assay.types import Batch as Batch
    from assay.types import Edit as Edit
    from assay.types import Explainer as Explainer
    from assay.types import Model as Model
    from assay.types import Output as Output
    from assay.types import PooledModel as PooledModel

__version__ = "0.1.0"

# Loaded when first used, so that `assay --help` need not wait for torch.
_HOME = {
    "data.corpora": "corpus CORPORA",
    "run.api": "train finetune load wrap",
    "run.auditing": "audit",
    "run.explaining": "explain",
    "run.workbench": "attend",
    "run.influencing": "influence mislabelled",
    "run.rationalising": "rationalise",
    "run.probing": "probe",
    "study.studying": "study",
    "run.reporting": "report",
    "serve.server": "serve",
    "explainers": "EXPLAINERS",
    "audits": "AUDITS",
    "influence": "METHODS",
    "intervene": "EDITS",
    "rationales.recipes": "RECIPES",
    "models.encoders": "ENCODERS",
    "types": "Batch Edit Explainer Model Output PooledModel",
    "audits.cases": "Audit",
    "influence.setting": "Method",
    "data.examples": "Corpus Example",
    "records": "Record",
    "errors": "AssayError",
}
_MODULE = {name: module for module, names in _HOME.items() for name in names.split()}
__all__ = sorted(_MODULE)


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'assay' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"assay.{_MODULE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _Face(ModuleType):
    """The package with verbs that have the names of its folders: an import of the folder does not hide the verb."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _MODULE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face

"""Trials: one model on one corpus, with one seed and one set of audits; a trial's identity is a hash of these."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from assay.audits import USUAL_AUDITS
from assay.errors import AssayError
from assay.explainers import USUAL
from assay.run.plan import AuditPlan

FORMAT = 1  # of models: raised when the same training would come out otherwise
ANSWERS = 3  # raised when the same model would be explained or audited otherwise


@dataclass(frozen=True)
class Source:
    """A corpus by name or as a file, whole or with `train` of its training texts.

    An `epsilon` of its own counts more than that of the audits.
    """

    name: str
    train: int | None = None
    joined: bool = False
    shown: str = ""
    sha256: str | None = None  # of a file: the same name may hold other texts tomorrow
    epsilon: float | None = None  # change of the output that counts as none, on this corpus

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise AssayError(f"A corpus is a name, or a table with one, not {self.name!r}.")
        if self.train is not None and (type(self.train) is not int or self.train < 1):
            raise AssayError(f"Of a corpus, train must be a number of texts of at least 1, got {self.train!r}.")
        if self.epsilon is not None and not 0 <= self.epsilon < 1:
            raise AssayError(f"Of a corpus, epsilon must be at least 0 and below 1, got {self.epsilon:g}.")

    @property
    def title(self) -> str:
        some = "" if self.train is None else f" ({self.train} texts)"
        return (self.shown or self.name) + some


@dataclass(frozen=True)
class Kind:
    """A kind of model: a preset or a pretrained `base` with options, or a trained one in a folder."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()
    base: str | None = None
    path: str | None = None
    sha256: str | None = None  # of a folder: another model may lie there tomorrow

    def check(self) -> None:
        """Raises where no model can be made with the options."""
        from assay.models.config import Training
        from assay.models.hf_finetuning import FineTuning
        from assay.run.verbs import recipe

        given = dict(self.options)
        if "seed" in given:
            raise AssayError(f"The seeds of a plan are its own entry; leave seed out of the model {self.name!r}.")
        if self.base is None:
            recipe(**given)
            return
        own = {name: given.pop(name) for name in ("head", "frozen", "dtype") if name in given}
        FineTuning(self.base, **own), Training(**given)


@dataclass(frozen=True)
class AuditSet:
    """A set of audits with the explainers that they test, and the number of test texts."""

    name: str
    explainers: tuple[str, ...] = USUAL
    audits: tuple[str, ...] = USUAL_AUDITS
    limit: int | None = None
    epsilon: float = 0.01

    def __post_init__(self) -> None:
        self.plan(0)  # refuses what cannot be done

    def on(self, corpus: Source) -> AuditSet:
        """The same with the corpus's own epsilon, if it has one."""
        return self if corpus.epsilon is None else replace(self, epsilon=corpus.epsilon)

    def plan(self, seed: int) -> AuditPlan:
        return AuditPlan(self.explainers, self.audits, seed, self.limit, self.epsilon)


@dataclass(frozen=True)
class Trial:
    """One cell of the grid."""

    corpus: Source
    kind: Kind
    seed: int
    audit_set: AuditSet
    data_seed: int = 0

    @property
    def title(self) -> str:
        return f"{self.corpus.title} · {self.kind.name} · seed {self.seed} · {self.audit_set.name}"

    @cached_property
    def identity(self) -> str:
        """A hash of all that decides the numbers, without names."""
        return _hash(
            self._model | {"answers": ANSWERS, "asked": _without(asdict(self.audit_set), "name"), "seed": self.seed}
        )

    @cached_property
    def model_identity(self) -> str:
        """A hash of all that decides the model."""
        return _hash(self._model)

    @property
    def _model(self) -> dict[str, Any]:
        source = _without(asdict(self.corpus), "shown", "epsilon")  # which the audits have taken over
        if self.corpus.sha256 is not None:
            del source["name"]  # a file is what it holds
        kind = _without(asdict(self.kind), "name")
        if self.kind.sha256 is None:
            del kind["sha256"]
        else:
            kind["path" if self.kind.path is not None else "base"] = "folder"  # which is what it holds
        learnt = {} if self.kind.path is not None else {"seed": self.seed}
        return {"format": FORMAT, "corpus": source, "data_seed": self.data_seed, "kind": kind} | learnt

    def json(self) -> dict[str, Any]:
        """As JSON values."""
        made: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return made | {"asked": made.pop("audit_set")}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Trial:
        """From JSON values."""
        kind, audit_set = dict(given["kind"]), dict(given["asked"])
        kind["options"] = tuple((name, _frozen(value)) for name, value in kind["options"])
        audit_set |= {name: tuple(audit_set[name]) for name in ("explainers", "audits")}
        return cls(Source(**given["corpus"]), Kind(**kind), given["seed"], AuditSet(**audit_set), given["data_seed"])


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _without(given: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key not in names}


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def model_folder(place: Path, trial: Trial) -> Path:
    """The folder of a trial's model, shared by all trials that need it."""
    return place / "models" / trial.model_identity

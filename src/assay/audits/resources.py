"""Resources of audits that need preparation: audited model, training corpus, and models trained for comparison."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from assay.audits.cases import Audit
from assay.caching import FinishedParts
from assay.data.batches import Tokenised
from assay.data.examples import Corpus
from assay.models.recipes import CHECKPOINT, Recipe, fingerprint, train
from assay.models.store import Checkpoint, Opened, Trained
from assay.models.workers import Variant as Variant  # looked for here
from assay.models.workers import train_all
from assay.types import Explainer

RETRAINED = "retrained"
FOREIGN = "only networks that assay trains itself are trained anew"
LACKING = "the texts that the model learnt from are not at hand"


@dataclass(frozen=True)
class Resources:
    """The audited model, explainers and texts; its training corpus and a folder for stored work, where known."""

    model: Opened
    explainers: Mapping[str, Explainer]
    rows: Sequence[Tokenised]
    corpus: Corpus | None = None
    folder: Path | None = None
    seed: int = 0

    @property
    def trained(self) -> Trained:
        """The audited model, where it is a network trained by this package."""
        assert isinstance(self.model, Trained)
        return self.model

    def recipe(self) -> Recipe | None:
        """The training recipe of the audited model, or None where it is unknown."""
        made = self.model.history.get("recipe")
        return None if made is None else Recipe.of(made)

    def lacks(self) -> str | None:
        """Why no comparable model can be trained, or None."""
        learnt = self.model.history.get("data")
        if not isinstance(self.model, Trained):
            return FOREIGN
        if self.corpus is None or learnt != fingerprint((*self.corpus.train, *self.corpus.dev)):
            return LACKING
        return None if self.recipe() is not None else "it is not known how the model was trained"

    def train(self, corpus: Corpus, name: str) -> Trained:
        """A model trained by the audited one's recipe on another corpus; stored under its name, so trained once."""
        recipe = self.recipe()
        assert recipe is not None
        folder = None if self.folder is None else self.folder / RETRAINED / name
        return train(corpus, recipe, folder, str(self.model.device))

    def train_all(self, variants: Mapping[str, Variant]) -> dict[str, Trained]:
        """Variants of the audited model trained on its own corpus, by name; each is trained once."""
        assert self.corpus is not None
        folder = None if self.folder is None else self.folder / RETRAINED
        return train_all(self.corpus, variants, folder, str(self.model.device))

    def cached(self, name: str, identity: dict[str, Any], work: Callable[[Checkpoint | None], Any]) -> Any:
        """The result of the work as JSON values, cached under its name.

        The work is handed a checkpoint to go on from; the identity is all that decides what it gives.
        """
        if self.folder is None:
            return work(None)
        place = self.folder / RETRAINED
        checkpoint = Checkpoint(place / name / CHECKPOINT, identity)
        part = FinishedParts(place).answer(name, identity, lambda: work(checkpoint))
        checkpoint.path.unlink(missing_ok=True)
        return part["answer"]

    def clear(self) -> None:
        """Deletes the models that were trained for the audits."""
        if self.folder is not None:
            shutil.rmtree(self.folder / RETRAINED, ignore_errors=True)


@runtime_checkable
class Remarking(Protocol):
    """An audit that has a remark once it is prepared."""

    @property
    def remark(self) -> str | None:
        """One sentence for the reader of a report, or None."""


@runtime_checkable
class PreparedAudit(Protocol):
    """An audit that needs preparation before the first batch, such as training other models."""

    def prepared(self, resources: Resources) -> Audit:
        """The audit with what it needs; equal at each call, also after an interruption."""

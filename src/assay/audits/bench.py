"""What an audit may use to prepare itself, before it is given the first batch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from assay.audits.cases import Audit
from assay.data.batches import Tokenised
from assay.data.examples import Corpus
from assay.errors import AssayError
from assay.files import write_text
from assay.models.checkpoints import Checkpoint
from assay.models.parallel_training import Variant as Variant  # looked for here
from assay.models.parallel_training import train_all
from assay.models.recipes import CHECKPOINT, Recipe, fingerprint, train
from assay.models.store import Opened, Trained
from assay.types import Explainer

RETRAINED, RESULT = "retrained", "result.json"
FOREIGN = "only networks that assay trains itself are trained anew"
LACKING = "the texts that the model learnt from are not at hand"


@dataclass(frozen=True)
class Bench:
    """The audited model, explainers and texts; the corpus it learnt from and a folder to keep work in, where known."""

    model: Opened
    explainers: Mapping[str, Explainer]
    rows: Sequence[Tokenised]
    corpus: Corpus | None = None
    folder: Path | None = None
    seed: int = 0

    @property
    def trained(self) -> Trained:
        """The audited model, where it is one of ours."""
        assert isinstance(self.model, Trained)
        return self.model

    def recipe(self) -> Recipe | None:
        """How the audited model was made, or None where it is not known."""
        made = self.model.history.get("recipe")
        return None if made is None else Recipe.of(made)

    def lacks(self) -> str | None:
        """Why no model can be trained here like the audited one, or None."""
        learnt = self.model.history.get("data")
        if not isinstance(self.model, Trained):
            return FOREIGN
        if self.corpus is None or learnt != fingerprint((*self.corpus.train, *self.corpus.dev)):
            return LACKING
        return None if self.recipe() is not None else "it is not known how the model was trained"

    def train(self, corpus: Corpus, name: str) -> Trained:
        """A model made as the audited one from another corpus; kept under its name, so it is trained once."""
        recipe = self.recipe()
        assert recipe is not None
        folder = None if self.folder is None else self.folder / RETRAINED / name
        return train(corpus, recipe, folder, str(self.model.device))

    def train_all(self, variants: Mapping[str, Variant]) -> dict[str, Trained]:
        """Models made from the corpus that the audited one learnt from, by their names; each is trained once."""
        assert self.corpus is not None
        folder = None if self.folder is None else self.folder / RETRAINED
        return train_all(self.corpus, variants, folder, str(self.model.device))

    def kept(self, name: str, identity: dict[str, Any], work: Callable[[Checkpoint | None], Any]) -> Any:
        """What the work gives, as JSON can hold it; kept under its name, so that it is done once.

        The work is handed a checkpoint to go on from; the identity is all that decides what it gives.
        """
        if self.folder is None:
            return work(None)
        place = self.folder / RETRAINED / name / RESULT
        if place.exists():
            found = json.loads(place.read_text(encoding="utf-8"))
            if found["identity"] != json.loads(json.dumps(identity)):
                raise AssayError(
                    f"{place.parent} was made with other options, model or data; remove it, and try again."
                )
            return found["result"]
        checkpoint = Checkpoint(place.parent / CHECKPOINT, identity)
        result = work(checkpoint)
        write_text(place, json.dumps({"identity": identity, "result": result}) + "\n")
        checkpoint.path.unlink(missing_ok=True)
        return result

    def clear(self) -> None:
        """Removes the models that were trained for the audits, once these are done."""
        if self.folder is not None:
            shutil.rmtree(self.folder / RETRAINED, ignore_errors=True)


@runtime_checkable
class Remarking(Protocol):
    """An audit that, once prepared, has something to say that is no number."""

    @property
    def remark(self) -> str | None:
        """One sentence for the reader of a report, or None."""


@runtime_checkable
class PreparedAudit(Protocol):
    """An audit that needs something before the first batch, such as other models."""

    def prepared(self, bench: Bench) -> Audit:
        """The same audit with what it needs; it must be the same at each call, also after an interruption."""

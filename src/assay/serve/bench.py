"""What the app needs of a live model; the command line hands it in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from assay.intervene.acts import Act


@runtime_checkable
class Bench(Protocol):
    """A model under the hands of a person. Answers are plain values that JSON can hold; bad input is an AssayError."""

    @property
    def about(self) -> dict[str, Any]:
        """What the model is: its classes, what it reads and attends to, which explainers and trees serve it."""

    def explain(
        self, text: str, query: str | None, explainers: Sequence[str], target: str | None, tree: str | None = None
    ) -> dict[str, Any]:
        """The decision and the scores of each word; with a tree, that too, and as it is drawn."""

    def attend(self, text: str, query: str | None, act: Act) -> dict[str, Any]:
        """The decision under other attention, beside the one without."""

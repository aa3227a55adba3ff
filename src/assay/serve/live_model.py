"""Protocol of a model that the app queries; the command line supplies implementations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from assay.intervene.edits import Act


@runtime_checkable
class LiveModel(Protocol):
    """A loaded model that explains texts. Results are JSON values; bad input raises AssayError."""

    @property
    def about(self) -> dict[str, Any]:
        """Metadata: classes, inputs, what it attends to, available explainers and trees."""

    def explain(
        self, text: str, query: str | None, explainers: Sequence[str], target: str | None, tree: str | None = None
    ) -> dict[str, Any]:
        """The decision and the scores of each word; with `tree`, also that explanation tree."""

    def attend(self, text: str, query: str | None, act: Act) -> dict[str, Any]:
        """The decision under edited attention, beside the unedited one."""

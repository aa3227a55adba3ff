"""How much each state depends on each word: the slope of the state's length in the word's embedding."""

from __future__ import annotations

from assay.models.dependence.slopes import shares, state_slopes

__all__ = ["shares", "state_slopes"]

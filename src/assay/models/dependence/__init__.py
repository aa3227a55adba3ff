"""How much each state depends on each word: the gradient of the state's length in the word's embedding."""

from __future__ import annotations

from assay.models.dependence.state_gradients import shares, state_gradient_norms

__all__ = ["shares", "state_gradient_norms"]

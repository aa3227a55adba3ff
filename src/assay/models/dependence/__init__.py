"""How much each hidden state depends on each word: ‖∂‖h_n‖/∂e_i‖, the gradient norm (Meister et al., 2021)."""

from __future__ import annotations

from assay.models.dependence.state_gradients import shares, state_gradient_norms

__all__ = ["shares", "state_gradient_norms"]

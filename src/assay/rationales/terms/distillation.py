"""Distillation from a teacher's predictions."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from assay.rationales.play import Play


@dataclass(frozen=True)
class Distillation:
    """The cross-entropy with the teacher's prediction on all words, softened by a temperature."""

    temperature: float = 2.0
    teacher: str = "teacher"
    player: str = "predictor"
    view: str = "selected"
    mask: int = 0

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        soft = (play.read(self.teacher, "all").logits.detach() / self.temperature).softmax(-1)
        logits = play.read(self.player, self.view, self.mask).logits / self.temperature
        return -(soft * logits.log_softmax(-1)).sum(-1)

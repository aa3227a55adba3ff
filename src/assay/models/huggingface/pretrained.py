"""Wraps any sequence classifier of the Hugging Face library."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay.models.huggingface.body import Body, Traits
from assay.types import Batch, Edit, Output


class Pretrained(Body):
    """An AutoModelForSequenceClassification; of one with independent labels, the yes or no of one label."""

    def __init__(
        self, inner: Any, traits: Traits, label: int | None = None, autocast: torch.dtype | None = None
    ) -> None:
        super().__init__(inner, traits)
        self.label = label
        self.autocast = autocast  # the precision of training

    @property
    def classes(self) -> int:
        return int(self.inner.config.num_labels) if self.label is None else 2

    @property
    def facts(self) -> dict[str, str]:
        kind, layers, heads = type(self.inner).__name__, self.layers, self.inner.config.num_attention_heads
        description = f"{kind}, {layers} layers of {heads} heads, {str(self.inner.dtype).removeprefix('torch.')}"
        return {"description": description, "shape": "transformer", "items": "words"}

    def forward(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Output:
        training = self.training and self.autocast is not None
        with torch.autocast(x.device.type, self.autocast) if training else nullcontext():
            given = self.sequence(x, batch)
            answer, weights = self.read(given, edit, keep=edit is not None, brief=self.traits.brief)
        return self.counted(Output(self._chosen(answer.logits), tuple(weights)))

    def layered(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Output:
        """As the call, with the weights of each layer, and the position that the classifier reads."""
        given = self.sequence(x, batch)
        answer, weights = self.read(given, edit, keep=True)
        return self.counted(Output(self._chosen(answer.logits), (*weights, self.reading(given))))

    def _chosen(self, logits: Float[Tensor, "B C"]) -> Float[Tensor, "B K"]:
        if self.label is None:
            return logits
        wanted = logits[:, self.label]
        return torch.stack([torch.zeros_like(wanted), wanted], dim=-1)  # their softmax is the label's sigmoid

    @property
    def cascade(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("classifier", *self.stack)

    def part(self, name: str) -> nn.Module:
        return self._head if name == "classifier" else self.below(name)

    def around(self, inner: Any) -> Pretrained:
        return type(self)(inner, self.traits, self.label, self.autocast)

    @property
    def _head(self) -> nn.Module:
        """All modules outside the library's base model, and its pooler if there is one."""
        base = self.inner.base_model
        above = [part for name, part in self.inner.named_children() if part is not base]
        pooler = getattr(base, "pooler", None)
        return nn.ModuleList([*above, *([] if pooler is None else [pooler])])


class SubwordPretrained(Pretrained):
    """The same with subwords as tokens: each has a row in the embedding table."""

    @property
    def vectors(self) -> Float[Tensor, "V D"]:
        table: Tensor = self.embedding.weight  # type: ignore[assignment]
        return table

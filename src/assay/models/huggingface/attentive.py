"""A pretrained encoder with one pooling attention over words and a linear decoder: exact tests apply to it."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.models.attention import Additive
from assay.models.huggingface.body import Body, Traits
from assay.models.projections import softmax
from assay.types import Batch, Edit, Output


class Attentive(Body):
    """A pooled model: a word's hidden state is the mean of its subwords', and attention pools the words."""

    def __init__(self, inner: Any, traits: Traits, classes: int, autocast: torch.dtype | None = None) -> None:
        super().__init__(inner, traits)
        size = int(inner.config.hidden_size)
        self.alignment = Additive(size, size // 2)
        self.decoder = nn.Linear(size, classes)
        self.autocast = autocast

    @property
    def classes(self) -> int:
        return self.decoder.out_features

    @property
    def facts(self) -> dict[str, str]:
        kind, layers, heads = type(self.inner).__name__, self.layers, self.inner.config.num_attention_heads
        description = f"attention over the words of {kind}, {layers} layers of {heads} heads"
        return {"description": description, "shape": "pooled transformer", "items": "words"}

    def items(self, batch: Batch) -> Int[Tensor, "B T"]:
        return torch.arange(batch.ids.shape[1], device=batch.ids.device).expand_as(batch.ids)

    def within(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T"]:
        return batch.mask.to(x.dtype)

    def states(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T M"]:
        return self._states(x, batch, keep=False)[0]

    def _states(
        self, x: Float[Tensor, "B T D"], batch: Batch, keep: bool
    ) -> tuple[Float[Tensor, "B T M"], list[Tensor]]:
        given = self.sequence(x, batch)
        with torch.autocast(x.device.type, self.autocast, enabled=self.autocast is not None and self.training):
            answer, weights = self.read(given, keep=keep)
        states = answer.last_hidden_state.to(self.decoder.weight.dtype)
        return given.shares(batch.ids.shape[1], states.dtype).mT @ states, weights

    def attend(self, states: Float[Tensor, "B T M"], batch: Batch) -> Float[Tensor, "B T"]:
        return softmax(self.alignment(states), batch.mask)

    def decode(self, states: Float[Tensor, "B T M"], weights: Float[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        logits: Tensor = self.decoder((weights[:, None] @ states).squeeze(1))
        return logits

    def forward(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Output:
        """The edit is applied to the attention that pools."""
        states = self.states(x, batch)
        weights = self.attend(states, batch)
        if edit is not None:
            weights = edit(weights, batch.mask)
        return self.counted(Output(self.decode(states, weights), (weights,)))

    def layered(self, x: Float[Tensor, "B T D"], batch: Batch) -> Output:
        states, below = self._states(x, batch, keep=True)
        weights = self.attend(states, batch)
        return self.counted(Output(self.decode(states, weights), (*below, weights)))

    @property
    def cascade(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("decoder", "alignment", *self.stack)

    def part(self, name: str) -> nn.Module:
        own: dict[str, nn.Module] = {"decoder": self.decoder, "alignment": self.alignment}
        return own[name] if name in own else self.below(name)

    def around(self, inner: Any) -> Attentive:
        return Attentive(inner, self.traits, self.classes, self.autocast)

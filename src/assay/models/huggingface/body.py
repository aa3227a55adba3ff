"""A Hugging Face transformer without its head: from the embeddings of words to hidden states."""

from __future__ import annotations

import sys
from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from assay.errors import AssayError, unknown
from assay.models.huggingface.attending import Watch, implemented, of_any_shape, turn, watched
from assay.models.huggingface.brevity import briefly, joint, unseen
from assay.models.huggingface.compiling import is_compiled
from assay.models.huggingface.layout import Sequence, Template, sequence
from assay.models.textmodel import TextModel
from assay.types import BLANKS, Batch, Edit

STATES = 16  # numbers, in parts of the hidden size, that a layer keeps of each position for the backward pass
COPIES = 4  # of these and of the attention: those that are there at a time, and room for all else
BUSY = 4096  # positions from which on a GPU has work to do


@dataclass(frozen=True)
class Traits:
    """Properties of a transformer, measured when it was loaded."""

    single: Template
    pair: Template | None
    left: bool  # padding stands on the left: the classifier reads the last position
    typed: bool  # positions have types
    reads: str  # what the classifier reads: the "first" position, the "last", or the "mean"
    unedited: str | None  # why attention cannot be edited, or None
    layers: int
    pad: int
    mask: int  # the subword that stands for a masked one
    special: int  # the first id after the special ones
    brief: bool = False  # the answer is the same where the uppermost layer is worked out at one position alone


class Body(TextModel):
    """The base class of models around a transformer that reads words as groups of subwords."""

    def __init__(self, inner: Any, traits: Traits) -> None:
        super().__init__()
        self.inner = inner
        self.traits = traits
        self.training = inner.training

    @property
    def embedding(self) -> nn.Module:  # type: ignore[override]
        table: nn.Module = self.inner.get_input_embeddings()
        return table

    @property
    def paired(self) -> bool:
        return self.traits.pair is not None

    @property
    def ordinary(self) -> int:
        return self.traits.special

    @property
    def layers(self) -> int:
        return self.traits.layers

    def room(self, longest: int = 0) -> int:
        """How many positions fit into the GPU memory for a backward pass through all layers.

        Where texts have up to `longest` positions, with the attention of every head as well. It goes by all memory that
        the device has, not by what is free, which is another number each time.
        """
        if self.device.type != "cuda":
            return sys.maxsize
        heads, size = int(self.inner.config.num_attention_heads), int(self.inner.config.hidden_size)
        numbers = COPIES * self.layers * (heads * longest + STATES * size)
        memory = torch.cuda.get_device_properties(self.device).total_memory
        return max(1, int(memory) // (numbers * torch.float32.itemsize))

    def embed(self, batch: Batch) -> Float[Tensor, "B T D"]:
        subwords = batch.ids[..., None] if batch.subwords is None else batch.subwords
        x = self.embedding(subwords.clamp(min=0)) * ((subwords >= 0) & batch.mask[..., None])[..., None]
        flat: Tensor = x.flatten(2)
        return flat

    def blank(self, name: str) -> Float[Tensor, " D"]:
        """The baseline embedding of a subword."""
        if name not in BLANKS:
            raise unknown("blank", name, BLANKS)
        table: Tensor = self.embedding.weight.detach()  # type: ignore[operator]
        if name == "mean":
            return table[self.ordinary : self.inner.config.vocab_size].mean(0)  # below may be moved ones
        return (
            torch.zeros_like(table[0])
            if name == "zero"
            else table[{"pad": self.traits.pad}.get(name, self.traits.mask)]
        )

    def sequence(self, x: Float[Tensor, "B T D"], batch: Batch) -> Sequence:
        """The subwords at the positions where the transformer reads them."""
        template = self.traits.single if batch.query is None else self.traits.pair
        if template is None:
            raise AssayError("This model reads one text; leave the question out.")
        return sequence(x, batch, template, self.embedding, self.traits.left)

    def token_index(self, batch: Batch) -> Int[Tensor, "B S"]:
        return self.sequence(self.embed(batch), batch).token_index

    def read(
        self, given: Sequence, edit: Edit | None = None, keep: bool = False, brief: bool = False, **asked: Any
    ) -> tuple[Any, list[Tensor]]:
        """Runs the library's model on a sequence; returns its output, and all attention weights with `keep`.

        Where a `brief` answer is enough, no more of the uppermost layer is worked out than the classifier reads; those
        who hook themselves in are shown all of it.
        """
        arguments: dict[str, Any] = {"inputs_embeds": given.embeddings, **asked}
        if not given.full or is_compiled(self.inner):  # what is compiled would be so once more without it
            arguments["attention_mask"] = given.mask.long()
        if self.traits.typed:
            arguments["token_type_ids"] = given.types
        if self.traits.left:
            arguments["position_ids"] = (given.mask.cumsum(-1) - 1).clamp(min=0)
        if edit is None and not keep:
            with turn(self.inner), of_any_shape(), self._narrowed(given) if brief else nullcontext():
                return self.inner(**arguments), []
        if self.traits.unedited is not None:
            if edit is not None:
                raise AssayError(self.traits.unedited)
            with implemented(self.inner, "eager"):
                answer = self.inner(**arguments, output_attentions=True)
            return answer, list(answer.attentions)
        if getattr(edit, "depth", 0) > self.layers:
            raise AssayError(f"The edit names a layer that is not there; the model has layers 0 to {self.layers - 1}.")
        watch = Watch(edit, keep)
        with watched(self.inner, watch):
            answer = self.inner(**arguments)
        if watch.calls != self.layers:
            raise AssayError(f"The model attended {watch.calls} times instead of {self.layers}; it cannot be edited.")
        return answer, watch.weights

    def reading(self, given: Sequence) -> Float[Tensor, "B S"]:
        """The positions that the classifier reads: 1 at one position, or equal weights on all."""
        mask = given.mask.to(given.embeddings)
        if self.traits.reads == "mean":
            return mask / mask.sum(-1, keepdim=True)
        real = given.mask.long()  # whole numbers: in half precision positions beyond 256 would be rounded
        there = torch.arange(mask.shape[1], device=mask.device) * real
        position = real.argmax(-1) if self.traits.reads == "first" else there.argmax(-1)
        return nn.functional.one_hot(position, mask.shape[1]).to(mask)

    def erased(self, tokens: Bool[Tensor, "B T"], batch: Batch) -> Bool[Tensor, "B S"]:
        """The mask of positions that belong to some tokens, for edits that erase them."""
        owners = self.token_index(batch)
        return tokens.gather(1, owners.clamp(min=0)) & (owners >= 0)

    @torch.no_grad()
    def maps(self, batch: Batch) -> Float[Tensor, "B L H T T"]:
        """The attention between words: summed over the subwords attended to, averaged over those that attend.

        Clark et al. (2019), section 4.1. What goes to special positions is left out, so rows sum to at most 1.
        """
        given = self.sequence(self.embed(batch), batch)
        _, weights = self.read(given, keep=True)
        tokens = batch.ids.shape[1]
        to, of = given.owners(tokens)[:, None].float(), given.shares(tokens).mT[:, None]
        return torch.stack([of @ layer.float() @ to for layer in weights], dim=1)

    @property
    def blocks(self) -> nn.ModuleList:
        """The layers, lowest first; some architectures use one several times."""
        lists = [part for part in self.inner.modules() if isinstance(part, nn.ModuleList)]
        return max(lists, key=len)

    @cached_property
    def joint(self) -> nn.Module | None:
        """The submodule after the last layer's attention, if it has a known name."""
        return joint(self.blocks[-1])

    @cached_property
    def top(self) -> tuple[nn.Module, ...]:
        """All modules after the last layer's attention."""
        below = {part for block in self.blocks[:-1] for part in block.modules()}
        return tuple(part for part in self.inner.modules() if part not in below)

    def _narrowed(self, given: Sequence) -> AbstractContextManager[None]:
        """Context manager: computes the last layer at one position only, unless it has hooks or cannot be.

        What a GPU does with few positions takes no time, but telling it to do less does.
        """
        idle = given.mask.device.type == "cuda" and given.mask.numel() < BUSY
        if idle or self.joint is None or is_compiled(self.inner) or not unseen(self.top):
            return nullcontext()
        return briefly(self.joint, self.traits.left)

    @property
    def stack(self) -> tuple[str, ...]:
        """The names of the layers, counted from 0, last first, and of the embeddings."""
        return (*(f"layer {number}" for number in reversed(range(len(self.blocks)))), "embedding")

    def below(self, name: str) -> nn.Module:
        """The module of the stack with this name."""
        return self.embedding if name == "embedding" else self.blocks[int(name.removeprefix("layer "))]

    @abstractmethod
    def around(self, inner: Any) -> Body:
        """A model of the same kind around another transformer; its head is new."""

    def redrawn(self, seed: int) -> Body:
        """A model of the same kind with all weights random."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            fresh = self.around(type(self.inner)(deepcopy(self.inner.config)))  # how it attends stands there
        return fresh.to(self.inner.dtype).to(self.device).eval()

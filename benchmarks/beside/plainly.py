"""The classifier as the Hugging Face library hands it out, for peers: embeddings of words in, probabilities out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from benchmarks.beside.turns import DEVICE, Text, prepared

AT_ONCE = 32  # versions of a text that a peer reads together, where it can be told


@dataclass
class Count:
    """Texts that were read forward; backward passes are not counted."""

    forward: float = 0.0
    backward: float = float("nan")


_count = Count()


@contextmanager
def counted() -> Iterator[Count]:
    """Counts what the classifier reads inside the block."""
    _count.forward = 0.0
    yield _count


class Plain:
    """A classifier and its tokenizer; words are those between the two special tokens."""

    def __init__(self, folder: Path) -> None:
        transformers.logging.set_verbosity_error()
        kind = transformers.AutoModelForSequenceClassification
        self.model: Any = kind.from_pretrained(folder / "model").eval().to(DEVICE)
        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder / "model")
        self.table: nn.Embedding = self.model.get_input_embeddings()
        self.model.base_model.encoder.register_forward_pre_hook(_noted)
        marks = [self.tokenizer.cls_token_id, self.tokenizer.sep_token_id]
        self.edges: Tensor = self.table(torch.tensor(marks, device=DEVICE)).detach()
        self.known: dict[tuple[str, ...], Tensor] = {}

    def ids(self, texts: Sequence[Text]) -> Tensor:
        """All pieces of texts of one length, special tokens included."""
        words = [text.words for text in texts]
        return prepared(self.known, texts, lambda: self.tokenizer(words, return_tensors="pt").input_ids.to(DEVICE))

    def words(self, texts: Sequence[Text]) -> Tensor:
        """The embeddings of the words."""
        return self.table(self.ids(texts)[:, 1:-1]).detach()

    def probabilities(self, x: Tensor) -> Tensor:
        """What the model says of these embeddings of words, with the special tokens around them."""
        first, last = (edge.expand(len(x), 1, -1).to(x) for edge in self.edges)
        probabilities: Tensor = self.model(inputs_embeds=torch.cat([first, x, last], 1)).logits.softmax(-1)
        return probabilities

    @torch.no_grad()
    def read(self, texts: Sequence[str]) -> Tensor:
        """The probabilities of strings, some at a time."""
        found = []
        for first in range(0, len(texts), AT_ONCE):
            given = self.tokenizer(list(texts[first : first + AT_ONCE]), return_tensors="pt", padding=True).to(DEVICE)
            found.append(self.model(**given).logits.softmax(-1))
        return torch.cat(found)

    def of(self, label: int) -> Callable[[Tensor], Tensor]:
        """The probability of one class, without gradients."""

        def answer(x: Tensor) -> Tensor:
            with torch.no_grad():
                parts = [self.probabilities(part)[:, label] for part in x.split(AT_ONCE)]
            return torch.cat(parts)

        return answer


LABELS: dict[tuple[str, ...], Tensor] = {}


def labels(texts: Sequence[Text]) -> Tensor:
    return prepared(LABELS, texts, lambda: torch.tensor([text.label for text in texts], device=DEVICE))


def _noted(module: nn.Module, given: tuple[Tensor, ...]) -> None:
    _count.forward += len(given[0])

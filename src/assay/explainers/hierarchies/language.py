"""A small bidirectional language model that samples words for masked positions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from assay import progress
from assay.data.batches import Tokenised, collate, shuffled
from assay.errors import AssayError, library_errors
from assay.files import write_text
from assay.models.encoders import mirrored, reordered
from assay.models.store import Checkpoint, save_tensors

CARD, WEIGHTS = "language.json", "language.safetensors"

Ids = Int[Tensor, "N T"]
Mask = Bool[Tensor, "N T"]


@dataclass(frozen=True)
class LanguageOptions:
    """Hyperparameters of the language model."""

    size: int = 64  # of embeddings
    hidden: int = 96  # of states, a direction
    epochs: int = 4
    batch_size: int = 32
    learning_rate: float = 3e-3
    predicted: float = 0.3  # the share of words that are guessed in each step


class Language(nn.Module):
    """p(word | left context, part of the right context): two LSTMs, one per direction (Jin et al., 2020).

    The one from the left reads every word, the one from the right only those that are shown. What is hidden can so be
    written from left to right, each word given those written before, and one pass over the text is enough.
    """

    seen: Tensor

    def __init__(self, words: int, options: LanguageOptions) -> None:
        super().__init__()
        self.words, self.options = words, options
        self.embedding = nn.Embedding(words + 2, options.size)  # the last two: hidden, and beyond the text
        self.ahead = nn.LSTM(options.size, options.hidden, batch_first=True)
        self.behind = nn.LSTM(options.size, options.hidden, batch_first=True)
        self.mix = nn.Linear(2 * options.hidden, options.size)
        self.bias = nn.Parameter(torch.zeros(words))
        self.register_buffer("seen", torch.ones(words, dtype=torch.bool))

    @classmethod
    def fit(
        cls,
        rows: Sequence[Tokenised],
        words: int,
        options: LanguageOptions | None = None,
        seed: int = 0,
        checkpoint: Checkpoint | None = None,
    ) -> Language:
        """Fits a language model to texts with ids below `words`; it only samples words that occur in them.

        With a checkpoint, an interrupted training goes on after the last epoch that it finished.
        """
        if not rows:
            raise AssayError("A language model needs at least one training text.")
        chosen = options or LanguageOptions()
        lengths = np.array([len(row.ids) for row in rows])
        with torch.random.fork_rng(devices=[]), progress.bar("status") as shown:
            torch.manual_seed(seed)
            language = cls(words, chosen)
            counts = torch.bincount(torch.cat([row.ids for row in rows]), minlength=words)
            language.seen.copy_(counts > 0)
            with torch.no_grad():
                language.bias.copy_((counts + 0.1).log() - (counts + 0.1).sum().log())
                language.embedding.weight.mul_(0.1)
            optimiser = torch.optim.Adam(language.parameters(), lr=chosen.learning_rate, fused=True)
            done_before = 0
            if checkpoint is not None and checkpoint.path.exists():
                done_before = int(checkpoint.restore(language, optimiser)[0]["epoch"])
            for epoch in range(done_before, chosen.epochs):
                torch.manual_seed(seed * 10_007 + epoch)  # the same whether or not it was interrupted before
                groups = shuffled(lengths, chosen.batch_size, (seed, epoch))
                task = shown.add_task(f"language {epoch + 1}/{chosen.epochs}", total=len(groups), status="")
                total = 0.0
                for done, group in enumerate(groups, start=1):
                    batch = collate([rows[position] for position in group])
                    loss = language._loss(batch.ids, batch.mask)
                    optimiser.zero_grad()
                    loss.backward()  # type: ignore[no-untyped-call]
                    nn.utils.clip_grad_norm_(language.parameters(), 1.0)
                    optimiser.step()
                    total += float(loss.detach())
                    shown.update(task, advance=1, status=f"loss {total / done:.3f}")
                if checkpoint is not None:
                    checkpoint.save(language, optimiser, {}, {"epoch": epoch + 1})
        return language.requires_grad_(False).eval()

    def _loss(self, ids: Ids, mask: Mask) -> Float[Tensor, ""]:
        """The mean negative log-likelihood of sampled positions, with a random share of the right context hidden."""
        rate = torch.rand(len(ids), 1)
        hidden = torch.rand(ids.shape) < rate
        asked = mask & (torch.rand(ids.shape) < self.options.predicted)
        asked[0, 0] = True
        states = torch.cat([self._from_left(ids), self._from_right(ids, mask, hidden)], dim=-1)
        return F.cross_entropy(self.logits(states[asked]), ids[asked])

    def logits(self, states: Float[Tensor, "*N H"]) -> Float[Tensor, "*N V"]:
        """The logits of all words given both contexts; words that never occurred get none."""
        scores = F.linear(self.mix(states), self.embedding.weight[: self.words], self.bias)
        return scores.masked_fill(~self.seen, -torch.inf)

    @torch.no_grad()
    def surprise(self, ids: Ids, mask: Mask, hidden: Mask) -> Float[Tensor, "N T"]:
        """−log p of each hidden word, given its left context and the visible right context; 0 elsewhere."""
        states = torch.cat([self._from_left(ids), self._from_right(ids, mask, hidden)], dim=-1)
        found = F.cross_entropy(self.logits(states).movedim(-1, 1), ids, reduction="none")
        return found * (hidden & mask)

    @torch.no_grad()
    def write(self, ids: Ids, mask: Mask, hidden: Mask, noise: Float[Tensor, "N T"]) -> Ids:
        """Samples words for the hidden positions; `noise` in [0, 1) are the random numbers."""
        hidden = hidden & mask
        behind = self._from_right(ids, mask, hidden)
        written, state = ids.clone(), None
        word = ids.new_full((len(ids), 1), self.words + 1)
        for position in range(ids.shape[1]):
            found, state = self.ahead(self.embedding(word), state)
            rows = hidden[:, position].nonzero()[:, 0]
            if len(rows):
                likely = self.logits(torch.cat([found[rows, 0], behind[rows, position]], dim=-1)).softmax(-1).cumsum(-1)
                drawn = noise[rows, position, None].to(likely) * likely[:, -1:]
                last = self.seen.nonzero()[-1, 0]
                written[rows, position] = torch.searchsorted(likely, drawn, right=True)[:, 0].minimum(last)
            word = written[:, position, None]
        return written

    def _from_left(self, ids: Ids) -> Float[Tensor, "N T H"]:
        """Hidden states of the left contexts."""
        states, _ = self.ahead(self.embedding(F.pad(ids, (1, 0), value=self.words + 1)[:, :-1]))
        found: Tensor = states
        return found

    def _from_right(self, ids: Ids, mask: Mask, hidden: Mask) -> Float[Tensor, "N T H"]:
        """Hidden states of the right contexts, as far as visible."""
        order = mirrored(mask)
        turned = ids.masked_fill(hidden, self.words).gather(1, order)
        states, _ = self.behind(self.embedding(F.pad(turned, (1, 0), value=self.words + 1)[:, :-1]))
        return reordered(states, order)

    def save(self, folder: Path, identity: Mapping[str, Any] | None = None) -> None:
        """Writes weights and card with the training data's identity; the card is written last."""
        save_tensors(self.state_dict(), folder / WEIGHTS)
        card = {"format": "assay-language-1", "words": self.words, "options": asdict(self.options)}
        card |= {"identity": dict(identity or {})}
        write_text(folder / CARD, json.dumps(card, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Language:
        """Reads a stored language model."""
        if not (folder / CARD).is_file():
            raise AssayError(f"{folder} has no language model: it has no {CARD}; fit one and save it there.")
        with library_errors(lambda reason: f"The language model in {folder} is damaged ({reason}); fit it again."):
            card = json.loads((folder / CARD).read_text(encoding="utf-8"))
            language = cls(card["words"], LanguageOptions(**card["options"]))
            language.load_state_dict(load_file(folder / WEIGHTS))
        return language.requires_grad_(False).eval()

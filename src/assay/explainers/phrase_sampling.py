"""Scores of phrases over contexts that a language model samples (Jin et al., 2020)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from assay.data.batches import Tokenised, collate
from assay.errors import AssayError, library_errors
from assay.explainers.decomposition import ContextualDecomposition, Decomposition, decomposed, margins, undivided
from assay.explainers.needs import Target, check_removal, demand, no_blank, no_table
from assay.explainers.phrases import Sets, SetScores, steps
from assay.files import write_text
from assay.models import store as tensors
from assay.models.config import Training
from assay.models.encoders import mirrored, reordered
from assay.models.erasure import capacity, filler, gathered, left
from assay.models.fit import Rows, Trainer
from assay.models.store import Checkpoint
from assay.types import Batch, Model, TokenModel, at_least_float32

# A small bidirectional language model that samples words for masked positions.


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
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            language = cls(words, chosen)
        counts = torch.bincount(torch.cat([row.ids for row in rows]), minlength=words)
        language.seen.copy_(counts > 0)
        with torch.no_grad():
            language.bias.copy_((counts + 0.1).log() - (counts + 0.1).sum().log())
            language.embedding.weight.mul_(0.1)
        LanguageTrainer(
            learner=language,
            optimiser=torch.optim.Adam(language.parameters(), lr=chosen.learning_rate, fused=True),
            options=Training(
                chosen.epochs, chosen.epochs, chosen.batch_size, chosen.learning_rate, clip=1.0, seed=seed
            ),
            lengths=np.array([len(row.ids) for row in rows]),
            language=language,
            train=rows,
        ).run(checkpoint, "language")
        return language.requires_grad_(False).eval()

    def loss(self, ids: Ids, mask: Mask) -> Float[Tensor, ""]:
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
        tensors.save_tensors(self.state_dict(), folder / WEIGHTS)
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


@dataclass(kw_only=True, eq=False)
class LanguageTrainer(Trainer):
    """The training of a language model for a fixed number of epochs, of which the last is kept."""

    language: Language
    train: Sequence[Tokenised]

    def step(self, rows: Rows) -> float:
        batch = collate([self.train[index] for index in rows])
        return float(self.update(self.language.loss(batch.ids, batch.mask)))

    def judge(self) -> tuple[float, float]:
        """No dev texts: each epoch is better than those before."""
        return float(self.state.epoch), 0.0

    def report(self) -> str:
        return self.status(self.state.losses[-1])


# Caches a fitted language model in a folder.


CHECKPOINT = "checkpoint.safetensors"


def kept(
    folder: Path | None,
    rows: Callable[[], Sequence[Tokenised]],
    words: int,
    data: str | None,
    options: LanguageOptions | None = None,
) -> Language:
    """The language model in the folder, or one fitted to the rows now and stored there.

    `data` stands for what it learns from; one that learnt from something else is refused, or from anything where it is
    not known. Rows are asked for if there is none yet; an interrupted training goes on.
    """
    chosen = options or LanguageOptions()
    if folder is not None and (folder / CARD).is_file():
        if data not in (None, known(folder).get("data")):
            raise AssayError(
                f"The language model in {folder} learnt from other texts than these; name the texts that the model "
                "learnt from, or remove that folder."
            )
        return Language.load(folder)
    learnt = rows()
    identity = {"data": data, "words": words, "options": asdict(chosen)}
    if folder is None:
        return Language.fit(learnt, words, chosen)
    folder.mkdir(parents=True, exist_ok=True)  # what cannot be written to is known before the work
    language = Language.fit(learnt, words, chosen, checkpoint=Checkpoint(folder / CHECKPOINT, identity))
    language.save(folder, identity)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return language


def known(folder: Path) -> dict[str, Any]:
    """What the language model in a folder was fitted to."""
    with library_errors(lambda reason: f"The language model in {folder} is damaged ({reason}); fit it again."):
        return dict(json.loads((folder / CARD).read_text(encoding="utf-8"))["identity"])


# Samples contexts around a phrase from a language model.


AnySampler = TypeVar("AnySampler", bound="Sampler")

TOKENS = 65_536  # written at once


@dataclass(frozen=True)
class Sampler:
    """Draws `samples` contexts per phrase, with `window` words on either side resampled.

    The numbers that decide which words come are the same for all phrases and texts: they depend on position, sample and
    seed alone. Where the window holds all of a text but the phrase, only the phrase is known, its position and the
    length of the text.
    """

    window: int = 10
    samples: int = 20
    seed: int = 0
    language: Language | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.window < 0 or self.samples < 1:
            raise AssayError("window must be at least 0, and samples at least 1.")

    def fit(
        self: AnySampler, rows: Sequence[Tokenised], words: int, options: LanguageOptions | None = None
    ) -> AnySampler:
        """A sampler with a language model fitted to these texts, over a vocabulary of size `words`."""
        return replace(self, language=Language.fit(rows, words, options, self.seed))

    def unfit(self, model: Model) -> str | None:
        """What the model lacks, or the sampler."""
        if self.window == 0:
            return None
        if not isinstance(model, TokenModel):
            return no_table(model)
        if self.language is None:
            return "there is no language model that could write other words; call fit with training texts first"
        same = self.language.words == len(model.vectors)
        return None if same else "the language model has other words than the model"

    def around(self, batch: Batch, chosen: Sets) -> Sets:
        """The mask of words around each phrase to be resampled."""
        if self.window == 0:
            return torch.zeros_like(chosen)
        wide = F.max_pool1d(chosen.float(), 2 * self.window + 1, 1, self.window) > 0
        return wide & ~chosen & batch.mask[:, None]

    def versions(self, batch: Batch, chosen: Sets) -> Int[Tensor, "B S K T"]:
        """The ids of each text with resampled contexts for each phrase; without a window, the text itself."""
        rows, sets, tokens = chosen.shape
        if self.window == 0:
            return batch.ids[:, None, None].expand(rows, sets, 1, tokens)
        assert self.language is not None
        language = self.language.to(batch.ids.device)
        drawn = np.random.default_rng(self.seed).random((tokens, self.samples)).T  # wider texts begin with the same
        noise = torch.from_numpy(np.ascontiguousarray(drawn)).to(batch.ids.device)
        ids, mask, hidden, noise = (
            each.expand(rows, sets, self.samples, tokens).reshape(-1, tokens)
            for each in (
                batch.ids[:, None, None],
                batch.mask[:, None, None],
                self.around(batch, chosen)[:, :, None],
                noise[None, None],
            )
        )
        step = max(1, TOKENS // max(1, tokens))
        parts = zip(*(torch.split(each, step) for each in (ids, mask, hidden, noise)), strict=True)
        return torch.cat([language.write(*part) for part in parts]).reshape(rows, sets, self.samples, tokens)


# Sampling and occlusion: the effect of removing a phrase, averaged over sampled contexts (Jin et al., 2020).


@dataclass(frozen=True)
class Estimate:
    """Scores and their standard errors from sampling."""

    scores: SetScores
    errors: SetScores


@dataclass(frozen=True)
class SamplingOcclusion(Sampler):
    """φ(p) = the mean of s(x̂) − s(x̂ without p) over texts x̂ with other words around p (Jin et al., 2020).

    s is the class's logit minus the mean of the others. A phrase gives way to padding, or is removed in another way.
    Without a window, φ is what the text itself loses.
    """

    removal: str = "pad"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_removal(self.removal)

    def unfit(self, model: Model) -> str | None:
        return super().unfit(model) or no_blank(model, self.removal)

    def estimated(self, model: Model, batch: Batch, target: Target, chosen: Sets) -> Estimate:
        """Scores with standard errors, which are 0 where nothing is sampled."""
        demand(self.unfit(model))
        chosen = chosen & batch.mask[:, None]
        example, number = chosen.any(-1).nonzero(as_tuple=True)
        texts, phrases = batch[example], chosen[example, number]
        versions = self.versions(texts, phrases[:, None])[:, 0]
        count, samples, tokens = versions.shape
        each = torch.arange(count, device=chosen.device).repeat_interleave(samples)
        read = replace(texts[each], ids=versions.reshape(-1, tokens))
        drops = _lost(model, read, target[example][each], ~phrases[each], self.removal).reshape(count, samples)
        spread = drops.std(-1) / math.sqrt(samples) if samples > 1 else torch.zeros_like(drops[:, 0])
        scores = drops.new_zeros(2, *chosen.shape[:2])
        scores[:, example, number] = torch.stack([drops.mean(-1), spread])
        return Estimate(scores[0], scores[1])

    def __call__(self, model: Model, batch: Batch, target: Target, chosen: Sets) -> SetScores:
        return self.estimated(model, batch, target, chosen).scores


@dataclass(frozen=True)
class SampledDecomposition(Sampler, ContextualDecomposition):
    """Contextual decomposition whose activations are divided over sampled contexts (SCD; Jin et al., 2020, section 3).

    What a part adds to an activation is the mean of f(h) − f(h − β) over the values h that it has in texts with other
    words around the phrase. All else is as in `ContextualDecomposition`, and so is the text that γ is taken from.
    """

    # differs from Jin et al. (2020): ReLU too is divided over contexts, and attention weights are the text's own

    def unfit(self, model: Model) -> str | None:
        return super().unfit(model) or undivided(model)

    def divided(self, model: Model, batch: Batch, chosen: Sets) -> Decomposition:
        """β and γ of all logits."""
        demand(self.unfit(model))
        chosen = chosen & batch.mask[:, None]
        return decomposed(model, batch, chosen, self.versions(batch, chosen))


@torch.no_grad()
def _lost(
    model: Model, texts: Batch, target: Int[Tensor, " N"], kept: Bool[Tensor, "N T"], removal: str
) -> Float[Tensor, " N"]:
    """The drop of the class's margin when only the kept words are left, for each text."""
    step = max(1, capacity(model, texts.ids.device) // max(1, texts.ids.shape[1]))
    found: list[Tensor] = []
    for number in steps(-(-len(texts) // step), "phrases"):
        part = slice(number * step, (number + 1) * step)
        batch, wanted = texts[part], target[part]
        x = model.embed(batch)
        whole = model(x, batch).logits
        blank = filler(model, batch, removal)
        if blank is not None:
            rest = model(torch.where(kept[part, :, None], x, blank), batch).logits
        else:
            here = kept[part] & batch.mask
            rows, positions = torch.arange(len(batch), device=here.device), left(here)
            rest = model(x[rows[:, None], positions], gathered(batch, rows, positions, here)).logits
        found.append(margins((whole - rest)[:, None], model, batch, wanted)[:, 0])
    margin = torch.cat(found) if found else torch.zeros(0, device=kept.device)
    return at_least_float32(margin)

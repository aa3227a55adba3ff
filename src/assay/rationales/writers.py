"""Writers: trained encoder–decoders, with their training and storage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch import Tensor

from assay import progress
from assay.data.batches import by_tokens
from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError, library_errors
from assay.files import write_text
from assay.models import budget
from assay.models.config import Training
from assay.models.fit import Rows, State, Trainer
from assay.models.recipes import CHECKPOINT, begun_in, course
from assay.models.store import CARD, TOKENISER, WEIGHTS, Checkpoint, fingerprint, save_tensors
from assay.rationales.sequences import (
    END_ID,
    FIRST,
    LONGEST_TARGET,
    EncoderDecoder,
    Pair,
    Row,
    Sequences,
    Sizes,
    encoded,
    search,
    together,
)


@dataclass(kw_only=True, eq=False)
class WriterTrainer(Trainer):
    """Teacher forcing; the learning rate falls in a straight line to a tenth of what it was."""

    network: EncoderDecoder
    train: Sequence[Row]
    dev: Sequence[Row]

    def prepare(self) -> None:
        super().prepare()
        rate = self.options.learning_rate * (1 - 0.9 * self.state.epoch / self.options.epochs)
        self.optimiser.param_groups[0]["lr"] = rate

    def step(self, rows: Rows) -> Tensor:
        """As declared; the loss is the mean of a word."""
        batch = together([self.train[index] for index in rows]).to(self.network.device)
        with precision(self.network.device):
            likelihood = self.network.likelihood(batch)
        return self.update(-likelihood.sum() / (batch.target != 0).sum())

    def judge(self) -> tuple[float, float]:
        loss = judged(self.network, self.dev)
        return -loss, loss


def fit(
    network: EncoderDecoder,
    train: Sequence[Row],
    dev: Sequence[Row],
    options: Training,
    checkpoint: Checkpoint | None = None,
) -> State:
    """Trains in place and restores the weights of the epoch with the lowest dev loss; returns the history."""
    return WriterTrainer(
        learner=network,
        optimiser=torch.optim.AdamW(network.parameters(), lr=options.learning_rate, weight_decay=options.decay),
        options=options,
        lengths=np.array([len(row.source) + len(row.target) for row in train]),
        state=State(best_score=-float("inf")),
        network=network,
        train=train,
        dev=dev,
    ).run(checkpoint)


def precision(device: torch.device) -> torch.autocast:
    """Context manager: autocast to bfloat16 on a GPU, nothing elsewhere."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def batches(network: EncoderDecoder, rows: Sequence[Row]) -> Iterator[tuple[Int[np.ndarray, " n"], Sequences]]:
    """Batches of rows of like length on the network's device, with their indices."""
    lengths = np.array([len(row.source) for row in rows])
    for group in by_tokens(lengths, budget.room(network.device, "likelihood")):
        yield group, together([rows[index] for index in group]).to(network.device)


@torch.no_grad()
def judged(network: EncoderDecoder, rows: Sequence[Row]) -> float:
    """The mean loss of a word."""
    network.eval()
    total, words = torch.zeros((), device=network.device), 0
    for group, batch in batches(network, rows):
        with precision(network.device):
            total -= network.likelihood(batch).sum()
        words += sum(len(rows[index].target) for index in group)
    return float(total) / words


@dataclass(frozen=True)
class WriterRecipe:
    """All options that decide the weights, besides pairs, vocabulary and initial weights."""

    sizes: Sizes = field(default_factory=Sizes)
    training: Training = field(
        default_factory=lambda: Training(epochs=12, patience=3, batch_size=64, decay=0.0, clip=1.0)
    )


@dataclass(frozen=True)
class Writer:
    """Generates sentences from source texts."""

    network: EncoderDecoder
    tokeniser: Tokeniser
    history: dict[str, Any] = field(default_factory=dict)

    def __call__(
        self, sources: Sequence[str], beams: int = 1, longest: int = LONGEST_TARGET
    ) -> tuple[list[str], Float[np.ndarray, " N"]]:
        """The sentence generated for each source, with its log-probability; a beam of 1 is greedy."""
        rows = encoded([Pair(source, "") for source in sources], self.tokeniser)
        words, texts, scores = self.tokeniser.vocabulary, [""] * len(rows), np.zeros(len(rows))
        self.network.eval()
        with progress.bar() as shown:
            task = shown.add_task("writing", total=len(rows))
            for group, batch in batches(self.network, rows):
                with precision(self.network.device):
                    ids, found = search(self.network, batch, beams, longest)
                scores[group] = found.double().cpu().numpy()
                for index, line in zip(group, ids.cpu().tolist(), strict=True):
                    texts[index] = " ".join(_named(line, words, rows[index].oov))
                shown.advance(task, len(group))
        return texts, scores

    @torch.no_grad()
    def first(self, sources: Sequence[str], words: Sequence[str]) -> Float[np.ndarray, "N C"]:
        """The log-probability of each word as the first, normalised over these words."""
        rows = encoded([Pair(source, "") for source in sources], self.tokeniser)
        ids = torch.tensor([self.tokeniser.inner.token_to_id(word) or -1 for word in words])
        if (ids < 0).any():
            raise AssayError(f"The vocabulary lacks one of the words {', '.join(words)}; train with all classes.")
        scores = np.zeros((len(rows), len(words)))
        self.network.eval()
        for group, batch in batches(self.network, rows):
            with precision(self.network.device):
                memory = self.network.encode(batch)
                start = torch.full_like(batch.source[:, 0], FIRST)
                following, _ = self.network.following(memory, start, memory.begin)
            scores[group] = following[:, ids.to(following.device)].double().log_softmax(-1).cpu().numpy()
        return scores

    def chosen(self, sources: Sequence[str], words: Sequence[str]) -> Int[np.ndarray, " N"]:
        """The index of the likeliest of the words."""
        indices: Int[np.ndarray, " N"] = self.first(sources, words).argmax(-1)
        return indices


def _named(ids: Sequence[int], words: Sequence[str], oov: Sequence[str]) -> list[str]:
    ended = ids.index(END_ID) if END_ID in ids else len(ids)
    return [words[word] if word < len(words) else oov[word - len(words)] for word in ids[:ended]]


FORMAT = "assay-writer-1"


def save(writer: Writer, folder: Path) -> None:
    """Writes the folder; the card is written last and marks it as complete."""
    write_text(folder / TOKENISER, writer.tokeniser.to_json())
    save_tensors(writer.network.state_dict(), folder / WEIGHTS)
    card = {
        "format": FORMAT,
        "sizes": asdict(writer.network.sizes),
        "text": asdict(writer.tokeniser.options),
        "history": writer.history,
    }
    write_text(folder / CARD, json.dumps(card, indent=1, ensure_ascii=False) + "\n")


def load(folder: Path, device: str = "cpu") -> Writer:
    """Reads the folder."""
    if not (folder / CARD).is_file():
        raise AssayError(f"{folder} holds no writer: it has no {CARD}.")
    with library_errors(lambda reason: f"The writer in {folder} is damaged ({reason}); train it again."):
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        if card["format"] != FORMAT:
            raise AssayError(f"{folder} holds another kind of model, no writer.")
        tokeniser = Tokeniser.from_json((folder / TOKENISER).read_text(encoding="utf-8"), TextOptions(**card["text"]))
        network = EncoderDecoder(Sizes(**card["sizes"]), len(tokeniser.vocabulary))
        network.load_state_dict(load_file(folder / WEIGHTS))
    return Writer(network.to(device).eval(), tokeniser, card["history"])


def train(
    recipe: WriterRecipe,
    pairs: Sequence[Pair],
    dev: Sequence[Pair],
    tokeniser: Tokeniser,
    folder: Path | None = None,
    start: Writer | None = None,
    device: str = "cpu",
) -> Writer:
    """Trains a writer, from random weights or from those of `start`, which has the same vocabulary.

    With a folder it is stored there, an interrupted training goes on, and a finished one is only read.
    """
    identity = {
        "recipe": asdict(recipe),
        "pairs": hashed([[pair.source, pair.target, pair.whole] for pair in (*pairs, *dev)]),
        "words": hashed([tokeniser.vocabulary]),
        "start": None if start is None else fingerprint(start.network),
    }
    if folder is not None and (folder / CARD).exists():
        return _finished(folder, identity, device)
    with torch.random.fork_rng():
        torch.manual_seed(recipe.training.seed)
        network = EncoderDecoder(recipe.sizes, len(tokeniser.vocabulary)).to(device)
    if start is not None:
        network.load_state_dict(start.network.state_dict())
    checkpoint = None if folder is None else begun_in(folder, identity)
    rows, dev_rows = encoded(pairs, tokeniser), encoded(dev, tokeniser)
    writer = Writer(network, tokeniser, identity | course(fit(network, rows, dev_rows, recipe.training, checkpoint)))
    if folder is not None:
        save(writer, folder)
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return writer


def hashed(rows: Iterable[Sequence[Any]]) -> str:
    """A hash of rows of plain values."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row).encode())
    return digest.hexdigest()[:16]


def _finished(folder: Path, identity: dict[str, Any], device: str) -> Writer:
    writer = load(folder, device)
    if any(writer.history.get(name) != value for name, value in json.loads(json.dumps(identity)).items()):
        raise AssayError(f"{folder} already holds a writer trained with other options or pairs; choose another folder.")
    return writer

"""Trains a writer on pairs of texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from assay.data.text import Tokeniser
from assay.errors import AssayError
from assay.models.recipes import CHECKPOINT, begun_in, course
from assay.models.store import CARD, fingerprint
from assay.rationales.text.fitting import fit
from assay.rationales.text.network import EncoderDecoder
from assay.rationales.text.pairs import Pair, encoded
from assay.rationales.text.storing import load, save
from assay.rationales.text.writer import Writer, WriterRecipe


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

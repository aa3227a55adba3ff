"""Small players and rows that many tests share."""

from __future__ import annotations

import torch

from assay.data.batches import Tokenised
from assay.models.network import Classifier
from assay.rationales.players import Players, Rules, assemble_players
from tests import builders


def players(
    rules: Rules,
    names: tuple[str, ...] = ("predictor", "selector"),
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    extras: tuple[str, ...] = (),
) -> Players:
    """Random readers and a head whose scores spread."""
    readers = {}
    for place, name in enumerate(names):
        network = builders.model(seed + place, dtype=dtype, encoder="gru")
        assert isinstance(network, Classifier)
        readers[name] = network
    cast = assemble_players(rules, readers, extras, 2, seed).to(dtype)
    with torch.no_grad():
        cast.head.score.weight.mul_(3.0)
    return cast


def rows(count: int = 24) -> list[Tokenised]:
    """Texts of 3 to 9 words, in which one word tells the class."""
    generator = torch.Generator().manual_seed(5)
    texts = []
    for index in range(count):
        label, length = index % 2, 3 + index % 7
        ids = torch.randint(10, builders.WORDS, (length,), generator=generator)
        ids[index % length] = 5 + label
        texts.append(Tokenised(index, ids, torch.zeros(length, 2).long(), torch.zeros(length).long(), label))
    return texts

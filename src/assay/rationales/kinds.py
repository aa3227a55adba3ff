"""Kinds of self-explaining models: how each is described in a folder and rebuilt from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor, nn

from assay.data.text import SPECIAL
from assay.models.config import Architecture
from assay.models.hf_models import Attentive
from assay.models.network import WordNetwork
from assay.models.textmodel import TextModel
from assay.rationales.aligner import Aligner
from assay.rationales.concepts.model import answering
from assay.rationales.concepts.selfexplaining import SelfExplaining
from assay.rationales.player_building import assemble_players
from assay.rationales.players import Reader
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.rules import Rules
from assay.rationales.transport import Transport


@dataclass(frozen=True)
class Stored:
    """Content of a model folder: card, tensors, vocabulary size and reader factory.

    A `reader` is untrained and knows that many words; a pretrained encoder is the stored one, and knows its own.
    """

    card: dict[str, Any]
    tensors: dict[str, Tensor]
    words: int
    reader: Callable[[int], Reader]

    @property
    def classes(self) -> int:
        return len(self.card["classes"])


@dataclass(frozen=True)
class Kind:
    """Storage of one kind of model: which tensors are stored, what its card describes, how it is rebuilt.

    The `reader` is what reads texts with the folder's tokeniser. Where that is a pretrained encoder, the tensors whose
    names begin with `inner` are its own, and lie in its own folder.
    """

    network: type[TextModel]
    body: Callable[[Any], nn.Module]
    reader: Callable[[Any], WordNetwork | Attentive | Aligner]
    inner: str
    described: Callable[[Any], dict[str, Any]]
    built: Callable[[Stored], TextModel]


def _game(network: Rationaliser) -> dict[str, Any]:
    players = network.players
    return {"rules": network.rules.json(), "readers": list(players.readers), "extras": list(players.extras)}


def _played(stored: Stored) -> Rationaliser:
    """All players but the predictor have a table of markers only."""
    card, rules = stored.card, Rules.of(stored.card["rules"])
    sizes = {name: stored.words if name == "predictor" else len(SPECIAL) for name in card["readers"]}
    readers = {name: stored.reader(words) for name, words in sizes.items()}
    return answering(assemble_players(rules, readers, tuple(card["extras"]), stored.classes), rules)


def _aligner(stored: Stored) -> Aligner:
    architecture, transport = Architecture(**stored.card["architecture"]), Transport(**stored.card["transport"])
    return Aligner(architecture, stored.words, stored.classes, transport)


def _self_explaining(stored: Stored) -> SelfExplaining:
    return SelfExplaining.of(stored.card["explaining"], stored.reader(stored.words), stored.tensors)


KINDS = {
    "game": Kind(
        Rationaliser,
        body=lambda network: network.players,
        reader=lambda network: network.players.predictor,
        inner="readers.predictor.inner.",
        described=_game,
        built=_played,
    ),
    "transport": Kind(
        Aligner,
        body=lambda network: network,
        reader=lambda network: network,
        inner="",
        described=lambda network: {"transport": asdict(network.transport)},
        built=_aligner,
    ),
    "selfexplain": Kind(
        SelfExplaining,
        body=lambda network: network,
        reader=lambda network: network.reader,
        inner="reader.inner.",
        described=lambda network: {"explaining": network.json},
        built=_self_explaining,
    ),
}


def kind_of(network: TextModel) -> str:
    """The name of a model's kind."""
    return next(name for name, kind in KINDS.items() if isinstance(network, kind.network))

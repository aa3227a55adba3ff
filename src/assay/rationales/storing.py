"""A model that selects words as a folder: weights in safetensors, everything else as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from assay.data.text import SPECIAL, TextOptions, Tokeniser
from assay.errors import AssayError, told
from assay.files import write_text
from assay.models import tensors
from assay.models.architecture import Architecture
from assay.models.huggingface.attentive import Attentive
from assay.models.huggingface.loading import configuration, encoder_of, silent, tokenizer_of
from assay.models.huggingface.pieces import PieceTokeniser
from assay.models.huggingface.traits import traits
from assay.models.network import WordNetwork
from assay.models.shapes import built
from assay.models.store import TOKENISER, WEIGHTS, Opened
from assay.rationales.casting import assembled
from assay.rationales.concepts.model import answering
from assay.rationales.players import Players, Reader
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.rules import Rules

CARD, ENCODER = "rationaliser.json", "encoder"
FORMAT = "assay-rationaliser-1"
INNER = "readers.predictor.inner."  # of a pretrained predictor; it lies in the encoder's folder


def is_folder(path: Path) -> bool:
    """Whether the folder holds a model that selects words."""
    return (path / CARD).is_file()


def save(model: Opened, folder: Path) -> None:
    """Writes the folder; the card comes last and marks it as whole."""
    network = model.network
    assert isinstance(network, Rationaliser)
    folder.mkdir(parents=True, exist_ok=True)
    players, predictor = network.players, network.players.predictor
    weights = players.state_dict()
    if isinstance(predictor, Attentive):
        assert isinstance(model.tokeniser, PieceTokeniser)
        with silent():
            predictor.inner.save_pretrained(folder / ENCODER)
            model.tokeniser.inner.save_pretrained(folder / ENCODER)
        weights = {name: tensor for name, tensor in weights.items() if not name.startswith(INNER)}
        made: dict[str, Any] = {"encoder": {"words": model.tokeniser.options.words}}
    else:
        assert isinstance(model.tokeniser, Tokeniser)
        write_text(folder / TOKENISER, model.tokeniser.to_json())
        made = {"architecture": asdict(predictor.architecture), "text": asdict(model.tokeniser.options)}
    tensors.save(weights, folder / WEIGHTS)
    card = {
        "format": FORMAT,
        "rules": network.rules.json(),
        "readers": list(players.readers),
        "extras": list(players.extras),
        **made,
        "classes": list(model.classes),
        "history": model.history,
    }
    write_text(folder / CARD, json.dumps(card, indent=2, ensure_ascii=False) + "\n")


def load(folder: Path, device: torch.device | str = "cpu") -> Opened:
    """Reads the folder."""
    if not is_folder(folder):
        raise AssayError(f"{folder} holds no model that selects words; train one with 'assay rationalise'.")
    with told(lambda reason: f"The model folder {folder} is damaged ({reason}); train it again or copy it anew."):
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        classes, rules = tuple(card["classes"]), Rules.of(card["rules"])
        readers, tokeniser = _pretrained(folder, card) if "encoder" in card else _ours(folder, card)
        players = assembled(rules, readers, tuple(card["extras"]), len(classes))
        _fill(players, load_file(folder / WEIGHTS), pretrained="encoder" in card)
        history = dict(card["history"])
    return Opened(answering(players, rules).to(device).eval(), tokeniser, classes, history)


def _ours(folder: Path, card: dict[str, Any]) -> tuple[dict[str, Reader], Tokeniser]:
    """Networks of ours, with random weights."""
    text = TextOptions(**card["text"])
    tokeniser = Tokeniser.from_json((folder / TOKENISER).read_text(encoding="utf-8"), text)
    readers: dict[str, Reader] = {}
    for name in card["readers"]:
        words = len(tokeniser.vocabulary) if name == "predictor" else len(SPECIAL)
        network = built(Architecture(**card["architecture"]), words, len(card["classes"]))
        assert isinstance(network, WordNetwork)
        readers[name] = network
    return readers, tokeniser


def _pretrained(folder: Path, card: dict[str, Any]) -> tuple[dict[str, Reader], PieceTokeniser]:
    """Encoders, all with the weights of the predictor's."""
    place = str(folder / ENCODER)
    config = configuration(place)
    tokeniser = tokenizer_of(place, config).with_options(words=card["encoder"]["words"], truncate=True)
    readers: dict[str, Reader] = {}
    for name in card["readers"]:
        inner = encoder_of(place, config, torch.float32)
        readers[name] = Attentive(inner, traits(inner, tokeniser.inner, place), len(card["classes"]))
    return readers, tokeniser


def _fill(players: Players, weights: dict[str, torch.Tensor], pretrained: bool) -> None:
    """Puts the stored weights in; only what lies elsewhere may be missing."""
    missing, surplus = players.load_state_dict(weights, strict=False)
    lacking = [name for name in missing if not (pretrained and name.startswith(INNER))]
    if lacking or surplus:
        raise ValueError(f"{(lacking or surplus)[0]} is {'missing' if lacking else 'unknown'}")

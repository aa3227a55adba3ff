"""Saves and loads self-explaining models: weights in safetensors, everything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError, library_errors
from assay.files import write_text
from assay.models.config import Architecture
from assay.models.hf_finetuning import FineTuning
from assay.models.hf_loading import configuration, encoder_of, silent, tokenizer_of
from assay.models.hf_models import Attentive, traits
from assay.models.hf_subwords import SubwordTokeniser
from assay.models.network import WordNetwork
from assay.models.networks import built
from assay.models.recipes import CHECKPOINT, Recipe, begun_in, check_same
from assay.models.store import SELECTING_CARD, TOKENISER, WEIGHTS, Checkpoint, Opened, digest, save_tensors
from assay.rationales.aligner import Aligner
from assay.rationales.players import Reader
from assay.rationales.rationaliser import Rationaliser, Selecting, Stored
from assay.rationales.selfexplaining import SelfExplaining

KINDS: dict[str, type[Selecting]] = {each.kind: each for each in (Rationaliser, Aligner, SelfExplaining)}

CARD, ENCODER = SELECTING_CARD, "encoder"
FORMAT = "assay-rationaliser-1"


def is_folder(path: Path) -> bool:
    """Whether the folder holds a self-explaining model."""
    return (path / CARD).is_file()


def load_or_train(
    folder: Path | None, identity: dict[str, Any], device: str, learn: Callable[[Checkpoint | None], Opened]
) -> Opened:
    """The model in the folder if its identity matches; else one trained now and stored there.

    What learns is handed a checkpoint to go on from. Without a folder nothing is stored.
    """
    if folder is None:
        return learn(None)
    if is_folder(folder):
        model = load(folder, device)
        check_same(folder, _completed(model.history), identity)
        return model
    model = learn(begun_in(folder, identity))
    save(model, folder)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return model


def plain(base: Recipe | FineTuning) -> dict[str, Any]:
    """All options of a base as JSON values; precision depends on the device and is left out."""
    return {name: value for name, value in asdict(base).items() if name != "dtype"}


def _completed(history: dict[str, Any]) -> dict[str, Any]:
    """The history with the defaults of options that were added later."""
    if "rationalising" not in history:
        return history
    base = history["rationalising"]["base"]
    made = (FineTuning if "base" in base else Recipe).of(base)
    return history | {"rationalising": {**history["rationalising"], "base": plain(made)}}


def save(model: Opened, folder: Path) -> None:
    """Writes the folder; the card is written last and marks it as complete."""
    network = model.network
    assert isinstance(network, Selecting)
    weights, reader = network.body.state_dict(), network.base
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(reader, Attentive):
        assert isinstance(model.tokeniser, SubwordTokeniser)
        with silent():
            reader.inner.save_pretrained(folder / ENCODER)
            model.tokeniser.inner.save_pretrained(folder / ENCODER)
        weights = {each: tensor for each, tensor in weights.items() if not each.startswith(network.inner)}
        made: dict[str, Any] = {"encoder": {"words": model.tokeniser.options.words}}
    else:
        assert isinstance(model.tokeniser, Tokeniser)
        write_text(folder / TOKENISER, model.tokeniser.to_json())
        made = {"architecture": asdict(reader.architecture), "text": asdict(model.tokeniser.options)}
    save_tensors(weights, folder / WEIGHTS)
    card = {
        "format": FORMAT,
        "kind": network.kind,
        **network.described,
        **made,
        "classes": list(model.classes),
        "sha256": digest(weights),
        "history": model.history,
    }
    write_text(folder / CARD, json.dumps(card, indent=2, ensure_ascii=False) + "\n")


def load(folder: Path, device: torch.device | str = "cpu") -> Opened:
    """Reads the folder."""
    if not is_folder(folder):
        raise AssayError(f"{folder} holds no model that selects words; train one with 'assay rationalise'.")
    with library_errors(
        lambda reason: f"The model folder {folder} is damaged ({reason}); train it again or copy it anew."
    ):
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        kind, weights = KINDS[card.get("kind", "game")], load_file(folder / WEIGHTS)
        if card.get("sha256") not in (None, digest(weights)):  # models of old have none
            raise ValueError(f"{WEIGHTS} is not what was stored")
        tokeniser, words, reader = _pretrained(folder, card) if "encoder" in card else _ours(folder, card)
        network = kind.of(Stored(card, weights, words, reader))
        _fill(network.body, weights, kind.inner if "encoder" in card else None)
        classes, history = tuple(card["classes"]), dict(card["history"])
    return Opened(network.to(device).eval(), tokeniser, classes, history)


def _ours(folder: Path, card: dict[str, Any]) -> tuple[Tokeniser, int, Callable[[int], Reader]]:
    """The tokeniser, its vocabulary, and untrained small networks."""
    text = TextOptions(**card["text"])
    tokeniser = Tokeniser.from_json((folder / TOKENISER).read_text(encoding="utf-8"), text)
    return tokeniser, len(tokeniser.vocabulary), partial(_network, card)


def _network(card: dict[str, Any], words: int) -> Reader:
    network = built(Architecture(**card["architecture"]), words, len(card["classes"]))
    assert isinstance(network, WordNetwork)
    return network


def _pretrained(folder: Path, card: dict[str, Any]) -> tuple[SubwordTokeniser, int, Callable[[int], Reader]]:
    """The same for a pretrained encoder, whose weights every reader shares."""
    path = str(folder / ENCODER)
    config = configuration(path)
    tokeniser = tokenizer_of(path, config).with_options(words=card["encoder"]["words"], truncate=True)

    def reader(_: int) -> Reader:
        inner = encoder_of(path, config, torch.float32)
        return Attentive(inner, traits(inner, tokeniser.inner, path), len(card["classes"]))

    return tokeniser, 0, reader


def _fill(body: nn.Module, weights: dict[str, Tensor], inner: str | None) -> None:
    """Loads the stored weights; only parameters that lie elsewhere may be missing."""
    missing, surplus = body.load_state_dict(weights, strict=False)
    lacking = [name for name in missing if inner is None or not name.startswith(inner)]
    if lacking or surplus:
        raise ValueError(f"{(lacking or surplus)[0]} is {'missing' if lacking else 'unknown'}")

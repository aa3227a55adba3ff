"""Model folders: weights as safetensors, everything else as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch.overrides import TorchFunctionMode

from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError, Damaged, library_errors
from assay.files import write_text
from assay.models import tensors
from assay.models.architecture import Architecture
from assay.models.huggingface.subwords import SubwordTokeniser
from assay.models.network import Network
from assay.models.shapes import built
from assay.models.textmodel import TextModel

CARD, WEIGHTS, TOKENISER = "model.json", "weights.safetensors", "tokenizer.json"


@dataclass(frozen=True)
class Opened:
    """A loaded classifier with its tokeniser and class names."""

    network: TextModel
    tokeniser: Tokeniser | SubwordTokeniser
    classes: tuple[str, ...]
    history: dict[str, Any] = field(default_factory=dict)  # corpus, training options and course

    @property
    def device(self) -> torch.device:
        return self.network.device


@dataclass(frozen=True)
class Trained(Opened):
    """A network trained here, with its tokeniser and class names."""

    network: Network
    tokeniser: Tokeniser


def save(model: Trained, folder: Path) -> None:
    """Writes the model folder; the card is written last, and marks the folder as complete."""
    write_text(folder / TOKENISER, model.tokeniser.to_json())
    tensors.save(model.network.state_dict(), folder / WEIGHTS)
    card = {
        "format": "assay-model-1",
        "architecture": asdict(model.network.architecture),
        "text": asdict(model.tokeniser.options),
        "classes": list(model.classes),
        "sha256": fingerprint(model.network),
        "history": model.history,
    }
    write_text(folder / CARD, json.dumps(card, indent=2, ensure_ascii=False) + "\n")


def load(folder: Path, device: torch.device | str = "cpu") -> Trained:
    """Reads a model folder."""
    if not (folder / CARD).is_file():
        raise AssayError(f"{folder} is not a model folder: it has no {CARD}; train one with 'assay train'.")
    advice = "train it again or copy it anew"
    with library_errors(lambda reason: f"The model folder {folder} is damaged ({reason}); {advice}.", Damaged):
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        tokeniser = Tokeniser.from_json((folder / TOKENISER).read_text(encoding="utf-8"), TextOptions(**card["text"]))
        sizes = Architecture(**card["architecture"]), len(tokeniser.vocabulary), len(card["classes"])
        _check_shapes(folder / WEIGHTS, *sizes)
        network = built(*sizes)
        weights = load_file(folder / WEIGHTS)
        if card.get("sha256") not in (None, tensors.digest(weights)):  # models of old have none
            raise ValueError(f"{WEIGHTS} is not what was stored")
        network.load_state_dict(weights)
        classes, history = tuple(map(str, card["classes"])), dict(card["history"])
    return Trained(network.to(device).eval(), tokeniser, classes, history)


def _check_shapes(path: Path, *sizes: Any) -> None:
    """Raises an error for weights of other sizes than the card says, before memory is allocated for them."""
    with torch.device("meta"), _Undrawn():
        wanted = {name: list(tensor.shape) for name, tensor in built(*sizes).state_dict().items()}
    with safe_open(path, framework="pt") as file:
        found = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
    if found != wanted:
        raise ValueError(f"{path.name} does not fit {CARD}")


class _Undrawn(TorchFunctionMode):
    """Context without random initialisation, which on the meta device would import torch's compiler: seconds."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__name__", "") in ("normal_", "uniform_"):
            return args[0] if args else kwargs["tensor"]
        return function(*args, **(kwargs or {}))


def fingerprint(network: torch.nn.Module) -> str:
    """The sha256 of all weights."""
    return tensors.digest(network.state_dict())

"""Models and checkpoints on disk: weights as safetensors, everything else as JSON; files are replaced atomically."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError, Damaged, library_errors
from assay.files import whole, write_text
from assay.models.config import Architecture
from assay.models.hf_subwords import SubwordTokeniser
from assay.models.network import Network
from assay.models.networks import built
from assay.models.textmodel import TextModel


def save_tensors(tensors: Mapping[str, Tensor], path: Path, header: dict[str, str] | None = None) -> None:
    """Writes the tensors; an operating system error, such as a full disk, is raised as it is."""
    with whole(path) as scratch:
        try:
            save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, scratch, header)
        except SafetensorError as fault:
            number = re.search(r"(?:os error|Os { code:) (\d+)", str(fault))
            if number is None:
                raise
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from fault


def digest(tensors: Mapping[str, Tensor], begun: bytes = b"") -> str:
    """The sha256 of tensors and their names, independent of their order."""
    found = hashlib.sha256(begun)
    for name, tensor in sorted(tensors.items()):
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint file, and the identity (corpus, recipe) of the training that it belongs to."""

    path: Path
    identity: dict[str, Any]

    def save(
        self,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        best: dict[str, Tensor],
        state: dict[str, Any],
    ) -> None:
        """Writes current and best weights, the optimiser's moments and the state of training."""
        tensors = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
        for index, values in optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{index}.{name}": value for name, value in values.items()}
        header = {"state": json.dumps(state), "identity": json.dumps(self.identity)}
        save_tensors(tensors, self.path, header | {"sha256": _checkpoint_digest(header, tensors)})

    def restore(self, network: nn.Module, optimiser: torch.optim.Optimizer) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Loads network and optimiser in place, and returns the state of training and the best weights."""
        with library_errors(self._damaged, Damaged):
            identity, state, tensors = self._read()
        if identity != json.loads(json.dumps(self.identity)):
            raise AssayError(
                f"The checkpoint {self.path} belongs to a training with other options or data; "
                "choose another folder, or remove that file."
            )
        network.load_state_dict(under(tensors, "network"))
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in under(tensors, "optimiser").items():
            index, key = name.split(".")
            moments.setdefault(int(index), {})[key] = tensor
        optimiser.load_state_dict({"state": moments, "param_groups": optimiser.state_dict()["param_groups"]})
        return state, under(tensors, "best")

    def _read(self) -> tuple[Any, dict[str, Any], dict[str, Tensor]]:
        with safe_open(self.path, framework="pt") as file:
            header = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        stored = header.pop("sha256", None)
        if stored not in (None, _checkpoint_digest(header, tensors)):  # checkpoints of old have none
            raise ValueError("it is not what was stored")
        return json.loads(header["identity"]), json.loads(header["state"]), tensors

    def _damaged(self, reason: str) -> str:
        return f"The checkpoint {self.path} is damaged ({reason}); remove it to train from the start."


def _checkpoint_digest(header: dict[str, str], tensors: dict[str, Tensor]) -> str:
    """The sha256 of a checkpoint's content, to detect corrupt weights."""
    return digest(tensors, json.dumps(header, sort_keys=True).encode())


def under(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    """The tensors with this prefix, by their names within it."""
    prefix = f"{part}."
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


CARD, WEIGHTS, TOKENISER = "model.json", "weights.safetensors", "tokenizer.json"
SELECTING_CARD = "rationaliser.json"  # of a model that selects what it reads


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
    save_tensors(model.network.state_dict(), folder / WEIGHTS)
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
        if card.get("sha256") not in (None, digest(weights)):  # models of old have none
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
    return digest(network.state_dict())

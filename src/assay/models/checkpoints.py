"""Training checkpoints: one safetensors file, replaced atomically after each epoch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from assay.errors import AssayError, Damaged, library_errors
from assay.models.tensors import digest, save


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
        save(tensors, self.path, header | {"sha256": _digest(header, tensors)})

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
        if stored not in (None, _digest(header, tensors)):  # checkpoints of old have none
            raise ValueError("it is not what was stored")
        return json.loads(header["identity"]), json.loads(header["state"]), tensors

    def _damaged(self, reason: str) -> str:
        return f"The checkpoint {self.path} is damaged ({reason}); remove it to train from the start."


def _digest(header: dict[str, str], tensors: dict[str, Tensor]) -> str:
    """The sha256 of a checkpoint's content, to detect corrupt weights."""
    return digest(tensors, json.dumps(header, sort_keys=True).encode())


def under(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    """The tensors with this prefix, by their names within it."""
    prefix = f"{part}."
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}

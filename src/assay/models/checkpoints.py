"""Where an interrupted training goes on: one safetensors file, replaced whole after each epoch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from assay.errors import AssayError
from assay.models.tensors import save


@dataclass(frozen=True)
class Checkpoint:
    """A file and the identity (corpus, recipe) of the training that it belongs to."""

    path: Path
    identity: dict[str, Any]

    def save(
        self,
        network: nn.Module,
        optimiser: torch.optim.Optimizer,
        best: dict[str, Tensor],
        state: dict[str, Any],
    ) -> None:
        """Writes the current and the best weights, the optimiser's moments and the state of training."""
        tensors = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
        for place, values in optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{place}.{name}": value for name, value in values.items()}
        header = {"state": json.dumps(state), "identity": json.dumps(self.identity)}
        save(tensors, self.path, header)

    def restore(self, network: nn.Module, optimiser: torch.optim.Optimizer) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Puts network and optimiser where they were, and returns the state of training and the best weights."""
        header, tensors = self._read()
        if json.loads(header["identity"]) != json.loads(json.dumps(self.identity)):
            raise AssayError(
                f"The checkpoint {self.path} belongs to a training with other options or data; "
                "choose another folder, or remove that file."
            )
        network.load_state_dict(under(tensors, "network"))
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in under(tensors, "optimiser").items():
            place, key = name.split(".")
            moments.setdefault(int(place), {})[key] = tensor
        optimiser.load_state_dict({"state": moments, "param_groups": optimiser.state_dict()["param_groups"]})
        return json.loads(header["state"]), under(tensors, "best")

    def _read(self) -> tuple[dict[str, str], dict[str, Tensor]]:
        try:
            with safe_open(self.path, framework="pt") as file:
                return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as fault:
            raise AssayError(
                f"The checkpoint {self.path} is damaged ({fault}); remove it to train from the start."
            ) from fault


def under(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    """The tensors of one part, by their names within it."""
    prefix = f"{part}."
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}

"""Store of projected gradients, in chunks of examples: on the device, in memory or in files, so that work resumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch import Tensor

from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.files import write_text
from assay.models.store import save_tensors
from assay.models.textmodel import TextModel

IDENTITY = "features.json"


@dataclass(frozen=True)
class FeatureChunk:
    """Some examples: their indices, features for each direction of the logits, and logits."""

    indices: Int[Tensor, " n"]
    features: Float[Tensor, "n K S"]
    logits: Float[Tensor, "n C"]

    def to(self, device: torch.device | str) -> FeatureChunk:
        return FeatureChunk(self.indices.to(device), self.features.to(device), self.logits.to(device))

    @property
    def bytes(self) -> int:
        return self.features.numel() * self.features.element_size()


@dataclass
class FeatureStore:
    """Chunks by number: on the device up to `memory` bytes, the rest in files or in main memory."""

    folder: Path | None
    memory: int
    held: dict[int, FeatureChunk] = field(default_factory=dict)
    made: int = 0

    def stored(self, name: str) -> Any:
        """The value that the folder's identity file has under that name, or None."""
        path = None if self.folder is None else self.folder / IDENTITY
        return None if path is None or not path.exists() else json.loads(path.read_text(encoding="utf-8")).get(name)

    def claim(self, identity: dict[str, Any]) -> None:
        """Writes the identity into the folder; raises where it holds features of something else."""
        if self.folder is None:
            return
        path = self.folder / IDENTITY
        if not path.exists():
            write_text(path, json.dumps(identity, indent=2) + "\n")
        elif {name: self.stored(name) for name in identity} != json.loads(json.dumps(identity)):
            raise AssayError(f"{self.folder} holds features of another model, data or options; choose another folder.")

    def tensors(self, name: str, device: torch.device, make: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
        """Tensors that all chunks share, such as projections: stored on first use, read afterwards."""
        if self.folder is None:
            return make()
        path = self.folder / f"{name}.safetensors"
        if not path.exists():
            save_tensors(make(), path)
        return {key: each.to(device) for key, each in load_file(path).items()}

    def get(self, number: int, device: torch.device, make: Callable[[], FeatureChunk] | None = None) -> FeatureChunk:
        """The chunk of that number: from memory, from its file, or computed now."""
        if number in self.held:
            return self.held[number].to(device)
        path = None if self.folder is None else self.folder / f"{number:05d}.safetensors"
        if path is not None and path.exists():
            stored = load_file(path)
            part = FeatureChunk(stored["places"], stored["features"], stored["logits"]).to(device)
        elif make is not None:
            part = make()
            self.made += 1
            if path is not None:
                save_tensors({"places": part.indices, "features": part.features, "logits": part.logits}, path)
        else:
            raise AssayError(f"{path} has vanished; start again.")
        fits = sum(each.bytes for each in self.held.values()) + part.bytes <= self.memory
        if fits or path is None:
            self.held[number] = part if fits else part.to("cpu")
        return part

    def all(self, count: int, device: torch.device) -> Iterator[FeatureChunk]:
        """All chunks in order."""
        for number in range(count):
            yield self.get(number, device)


def digest(network: TextModel, rows: Sequence[Tokenised]) -> str:
    """A hash of a network with its texts and labels."""
    found = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    for row in rows:
        found.update(row.ids.numpy().tobytes())
        found.update(b"" if row.query is None else row.query.numpy().tobytes())
        found.update(str((len(row.ids), row.label)).encode())
    return found.hexdigest()

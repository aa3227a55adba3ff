"""Reads and writes tensors as one safetensors file, atomically."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from assay.files import whole


def save(tensors: Mapping[str, Tensor], path: Path, header: dict[str, str] | None = None) -> None:
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

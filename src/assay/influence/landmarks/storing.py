"""Saves and loads landmark classifiers: tensors as safetensors, everything else as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from assay.errors import AssayError, library_errors
from assay.files import write_text
from assay.influence.landmarks.kernels import Kernel, Product, Spectrum, Subsequences, Sum, WordVectors
from assay.influence.landmarks.model import LandmarkModel, LandmarkSet
from assay.influence.landmarks.network import LandmarkNetwork, Layers
from assay.models.store import save_tensors

CARD, WEIGHTS = "landmarks.json", "landmarks.safetensors"
STORED = {each.__name__: each for each in (Sum, Product, Spectrum, Subsequences, WordVectors)}


def save(model: LandmarkModel, folder: Path) -> None:
    """Writes the folder; the card is written last and marks it as complete."""
    found = {f"network.{name}": each for name, each in model.network.state_dict().items()}
    sets = []
    for number, each in enumerate(model.sets):
        if any(not isinstance(text, str) for text in each.texts):
            raise AssayError(
                "The landmarks are rows of word ids, not texts; train on the texts to store the classifier."
            )
        kernel = _written(each.kernel, f"kernel.{number}", found)
        sets.append(
            {"kernel": kernel, "places": each.indices.tolist(), "texts": each.texts, "labels": each.labels.tolist()}
        )
    save_tensors(found, folder / WEIGHTS)
    card = {
        "format": "assay-landmarks-1",
        "classes": model.classes,
        "learnt": model.learnt,
        "layers": asdict(model.network.layers),
        "sets": sets,
        "history": model.history,
    }
    write_text(folder / CARD, json.dumps(card, indent=1, ensure_ascii=False) + "\n")


def load(folder: Path, device: str = "cpu") -> LandmarkModel:
    """Reads the folder."""
    if not (folder / CARD).is_file():
        raise AssayError(f"{folder} holds no landmark classifier: it has no {CARD}.")
    with library_errors(lambda reason: f"The landmark classifier in {folder} is damaged ({reason}); train it again."):
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        found = load_file(folder / WEIGHTS)
        sets = tuple(
            LandmarkSet(
                _read(each["kernel"], found), np.array(each["places"]), tuple(each["texts"]), np.array(each["labels"])
            )
            for each in card["sets"]
        )
        layers = Layers(**card["layers"] | {"hidden": tuple(card["layers"]["hidden"])})
        weights = {name.removeprefix("network."): each for name, each in found.items() if name.startswith("network.")}
        spaces = [weights[f"projections.{number}"] for number in range(len(sets))]
        network = LandmarkNetwork([torch.empty_like(each) for each in spaces], len(card["classes"]), layers)
        network.load_state_dict(weights)
        return LandmarkModel(sets, network.to(device).eval(), tuple(card["classes"]), card["learnt"], card["history"])


def _written(kernel: Kernel, name: str, found: dict[str, Tensor]) -> dict[str, Any]:
    """A kernel as JSON; its arrays are added to the tensors."""
    kind = type(kernel).__name__
    if STORED.get(kind) is not type(kernel):
        raise AssayError(f"A classifier with the kernel {kind} cannot be stored; choose one of: {', '.join(STORED)}.")
    written: dict[str, Any] = {"kind": kind}
    for each in fields(kernel):
        value = getattr(kernel, each.name)
        if isinstance(value, np.ndarray):
            found[f"{name}.{each.name}"] = torch.from_numpy(value).clone()
            written[each.name] = {"tensor": f"{name}.{each.name}"}
        elif each.name == "parts":
            written[each.name] = [_written(part, f"{name}.{index}", found) for index, part in enumerate(value)]
        else:
            written[each.name] = value
    return written


def _read(written: Mapping[str, Any], found: Mapping[str, Tensor]) -> Kernel:
    """The kernel from its JSON and tensors."""
    given: dict[str, Any] = {}
    for name, value in written.items():
        if isinstance(value, dict):
            given[name] = found[value["tensor"]].numpy()
        elif name == "parts":
            given[name] = tuple(_read(part, found) for part in value)
        elif name == "stretches" and value is not None:
            given[name] = tuple(map(tuple, value))
        else:
            given[name] = tuple(value) if isinstance(value, list) else value
    kernel: Kernel = STORED[given.pop("kind")](**given)
    return kernel

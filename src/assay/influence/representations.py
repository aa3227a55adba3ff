"""Representations of texts in every layer of a network, one vector each, cached in a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from safetensors.numpy import load_file
from torch import Tensor, nn

from assay import progress
from assay.data.batches import Tokenised, collate
from assay.errors import unknown
from assay.models.encoders import Transformer
from assay.models.hf_body import Body
from assay.models.hf_models import Attentive, Pretrained
from assay.models.network import Network
from assay.models.store import fingerprint, save_tensors
from assay.models.textmodel import TextModel, groups
from assay.types import Batch, PooledModel, attended

EMBEDDING, LAYER, STATES, ATTENDED, DECODER = "embedding", "layer {}", "states", "attended", "decoder"

LayerVectors = dict[str, Float[Tensor, "B _"]]


def layers(network: TextModel) -> tuple[str, ...]:
    """The names of all layers, lowest first.

    The "embedding" and each "layer", counted from 0, are means over the words of a text, "states" is that of the
    uppermost states, "attended" weighs these as the model reads them, and "decoder" is what the last linear
    map is given.
    """
    inner = (LAYER.format(number) for number in range(getattr(network, "layers", 0)))
    return (EMBEDDING, *inner, STATES, ATTENDED, DECODER)


@torch.no_grad()
def representations(
    network: TextModel, rows: Sequence[Tokenised], names: Sequence[str] = (DECODER,), folder: Path | None = None
) -> dict[str, Float[np.ndarray, "N _"]]:
    """A float32 vector of each text for each layer; read from the folder where it is there, else written."""
    for name in names:
        if name not in layers(network):
            raise unknown("layer", name, layers(network))
    paths = {} if folder is None else {name: folder / _file(network, rows, name) for name in names}
    found = {name: load_file(path)["vectors"] for name, path in paths.items() if path.exists()}
    if missing := [name for name in names if name not in found]:
        found |= _made(network, rows, missing)
    for name, path in paths.items():
        if not path.exists():
            save_tensors({"vectors": torch.from_numpy(found[name])}, path)
    return {name: found[name] for name in names}


def share_below(network: TextModel, row: Tokenised, name: str) -> float:
    """The share of the trained parameters that the representation depends on."""
    trained = [each for each in network.parameters() if each.requires_grad]
    batch = collate([row], network.classes).to(network.device)
    with torch.enable_grad():
        vector = read(network, batch)[name].sum()
        gradients = torch.autograd.grad(vector, trained, allow_unused=True) if vector.requires_grad else [None]
    met = sum(each.numel() for each, gradient in zip(trained, gradients, strict=False) if gradient is not None)
    return met / max(1, sum(each.numel() for each in trained))


def _made(network: TextModel, rows: Sequence[Tokenised], names: Sequence[str]) -> dict[str, Float[np.ndarray, "N _"]]:
    was_training = network.training
    network.eval()
    made: dict[str, np.ndarray] = {}
    with progress.bar() as shown:
        task = shown.add_task("representations", total=len(rows))
        for indices, batch in groups(network, rows):
            there = read(network, batch)
            for name in names:
                part = there[name].float().cpu().numpy()
                made.setdefault(name, np.zeros((len(rows), part.shape[1]), np.float32))[indices] = part
            shown.advance(task, len(indices))
    network.train(was_training)
    return made


def read(network: TextModel, batch: Batch) -> LayerVectors:
    """The vectors of all layers for a batch, from one forward pass."""
    if isinstance(network, Body):
        return _body(network, batch)
    assert isinstance(network, Network)
    return _network(network, batch)


def _network(network: Network, batch: Batch) -> LayerVectors:
    x = network.embed(batch)
    stack = list(network.encoder.blocks) if network.layers and isinstance(network.encoder, Transformer) else []
    with _noted(stack) as made:
        states = network.states(x, batch)
    around = made[0].shape[1] - batch.ids.shape[1] if made else 0  # markers stand before and after the words
    inner = [each[:, around // 2 : each.shape[1] - around // 2] for each in made]
    found = {EMBEDDING: _mean(x, batch.mask)}
    found |= {LAYER.format(index): _mean(each, batch.mask) for index, each in enumerate(inner)}
    return found | _pooled(network, states, batch)


def _body(network: Body, batch: Batch) -> LayerVectors:
    given = network.sequence(network.embed(batch), batch)
    with _noted(_linears(network), inputs=True) as maps:
        answer, _ = network.read(given, output_hidden_states=True)
    words = given.token_index >= 0
    inner = [each.to(given.embeddings.dtype) for each in answer.hidden_states]
    found = {EMBEDDING: _mean(given.embeddings, words)}
    found |= {LAYER.format(index): _mean(each, words) for index, each in enumerate(inner[1:])}
    if isinstance(network, Attentive):
        states = given.shares(batch.ids.shape[1], inner[-1].dtype).mT @ inner[-1]
        return found | _pooled(network, states, batch)
    weights = network.reading(given)
    last = maps[-1] if maps[-1].dim() == 2 else _weighed(maps[-1], weights)  # some decode every position
    return found | {STATES: _mean(inner[-1], words), ATTENDED: _weighed(inner[-1], weights), DECODER: last}


def _pooled(network: Network | Attentive, states: Float[Tensor, "B N M"], batch: Batch) -> LayerVectors:
    assert isinstance(network, PooledModel)
    weights = network.attend(states, batch)
    with _noted([network.decoder], inputs=True) as maps:
        network.decode(states, weights)
    return {
        STATES: _mean(states, attended(network, batch)),
        ATTENDED: _weighed(states, weights),
        DECODER: maps[-1].flatten(1),
    }


def _linears(network: Body) -> list[nn.Module]:
    """The linear layers of a classifier head from the transformers library."""
    if not isinstance(network, Pretrained):
        return []
    return [part for part in network.part("classifier").modules() if isinstance(part, nn.Linear)]


def _mean(states: Float[Tensor, "B N M"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B M"]:
    weights = mask.to(states)
    return _weighed(states, weights / weights.sum(-1, keepdim=True).clamp(min=1))


def _weighed(states: Float[Tensor, "B N M"], weights: Float[Tensor, "B N"]) -> Float[Tensor, "B M"]:
    return (weights[:, None].to(states) @ states).squeeze(1)


@contextmanager
def _noted(parts: Sequence[nn.Module], inputs: bool = False) -> Iterator[list[Tensor]]:
    """Context manager: records inputs or outputs of modules in call order."""
    found: list[Tensor] = []

    def note(part: nn.Module, given: Any, answer: Any) -> None:
        wanted = given if inputs else answer
        found.append(wanted[0] if isinstance(wanted, tuple) else wanted)

    hooks = [part.register_forward_hook(note) for part in parts]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _file(network: TextModel, rows: Sequence[Tokenised], name: str) -> str:
    """A file name that identifies network, layer and texts; where layers were counted from 1, the 0 was missing."""
    digest = hashlib.sha256(json.dumps([fingerprint(network), name, len(rows), 0]).encode())
    for row in rows:
        parts = (row.ids, row.query, row.sentences, row.subwords)
        said = [None if part is None else part.tolist() for part in parts]
        digest.update(json.dumps([said, row.candidates]).encode())
    return f"{digest.hexdigest()}.safetensors"

"""Small random texts and models for methods of influence, with exact gradients beside them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from assay.data.batches import Tokenised
from assay.influence import targets
from assay.influence.setting import Setting
from assay.models.textmodel import TextModel
from tests import builders


def texts(
    count: int, longest: int = 6, seed: int = 0, classes: int = 2, words: int = builders.WORDS
) -> list[Tokenised]:
    """Random texts of one to some words."""
    random = np.random.default_rng(seed)
    found = []
    for index in range(count):
        length = int(random.integers(1, longest + 1))
        ids = torch.from_numpy(random.integers(4, words, length))
        asked = torch.from_numpy(random.integers(4, words, 3))
        indices, sentences = torch.arange(length, dtype=torch.int32), torch.arange(length) // 3
        spans = torch.stack([indices, indices + 1], dim=-1)
        found.append(Tokenised(index, ids, spans, sentences, int(random.integers(classes)), query=asked))
    return found


def setting(network: TextModel, count: int = 12, asked: int = 4, target: str = "margin", **options: object) -> Setting:
    """A setting with random texts and weights, and some L2 on all but embeddings."""
    rows = texts(count + asked, classes=network.classes, **options)  # type: ignore[arg-type]
    made = Setting.of(network, rows[:count], rows[count:], target)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, count)
    decay = {name: 0.0 if name.startswith("embedding") else 1e-2 for name in made.parameters}
    return Setting(made.network, made.train, made.queries, made.classes, target, weights, decay)


def gradients(setting: Setting, target: str, rows: list[Tokenised], classes: np.ndarray) -> Tensor:
    """The gradients of all parameters side by side, a backward pass for each row."""
    found = []
    for row, chosen in zip(rows, classes, strict=True):
        ((_, batch),) = setting.batches([row])
        logits = setting.network(setting.network.embed(batch), batch).logits
        value = targets.target(target)(logits, torch.tensor([chosen])).sum()
        own = list(setting.parameters.values())
        each = torch.autograd.grad(value, own, allow_unused=True)
        found.append(
            torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in zip(each, own, strict=True)])
        )
    return torch.stack(found)


def asked(setting: Setting) -> Tensor:
    """The gradients of the targets of the queries."""
    return gradients(setting, setting.target, list(setting.queries), setting.classes)


def learnt(setting: Setting) -> Tensor:
    """The gradients of the losses of the training rows."""
    return gradients(setting, "loss", list(setting.train), np.array([row.label for row in setting.train]))


def directions(setting: Setting) -> Tensor:
    """Vectors whose outer products sum to the curvature: gradients for each class, by the root of its share."""
    found = []
    for row, weight in zip(setting.train, setting.weights, strict=True):
        ((_, batch),) = setting.batches([row])
        shares = setting.network(setting.network.embed(batch), batch).logits.softmax(-1)[0].detach()
        classes = np.arange(setting.network.classes)
        each = gradients(setting, "loss", [row] * len(classes), classes)
        found.append(each * (weight * shares[:, None] / len(setting.train)).sqrt())
    return torch.cat(found)


def fisher(setting: Setting) -> Tensor:
    """The whole curvature: the expectation over classes of the outer products of gradients, and L2."""
    found = directions(setting)
    decay = [torch.full((each.numel(),), setting.decay.get(name, 0.0)) for name, each in setting.parameters.items()]
    return found.T @ found + torch.cat(decay).double().diag()


def traces(setting: Setting) -> dict[str, float]:
    """The trace of the curvature over each parameter, without L2."""
    sizes = [each.numel() for each in setting.parameters.values()]
    parts = directions(setting).square().sum(0).split(sizes)
    return dict(zip(setting.parameters, (float(part.sum()) for part in parts), strict=True))

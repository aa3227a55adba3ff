"""Trains landmark classifiers from texts and their classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.influence.landmarks import fitting, nystrom
from assay.influence.landmarks.kernels import Kernel, Passage, WordVectors
from assay.influence.landmarks.model import LandmarkModel, LandmarkRecipe, LandmarkSet
from assay.influence.landmarks.network import LandmarkNetwork, TrainedVectors


def train(
    recipe: LandmarkRecipe,
    texts: Sequence[Passage],
    labels: Int[np.ndarray, " N"],
    classes: Sequence[str],
    dev: tuple[Sequence[Passage], Int[np.ndarray, " D"]] | None = None,
    logits: Float[np.ndarray, "N C"] | None = None,
    device: str = "cpu",
) -> LandmarkModel:
    """Trains a classifier on labels or, where given, on the logits of a network for these texts.

    Training stops by the `dev` texts; without any, by one tenth of the texts, of which none is a landmark.
    """
    if len(texts) < 4 or len(texts) != len(labels):
        raise AssayError("At least four texts are needed to learn from, and a label for each.")
    if dev is not None and logits is not None:
        raise AssayError("A classifier that learns the logits of a network stops by some of the same texts.")
    more, goals = ([], labels) if dev is None else (dev[0], np.concatenate([labels, dev[1]]))
    held = (
        np.arange(len(texts), len(texts) + len(more)) if dev is not None else _tenth(len(texts), recipe.training.seed)
    )
    own = np.setdiff1d(np.arange(len(texts)), held)
    sets = _sets(recipe, texts, labels, own)
    front = fitting.LikenessLayer([_part(each, [*texts, *more], recipe.joint, device) for each in sets]).to(device)
    grams = [each.kernel(each.texts, each.texts) for each in sets]
    spaces = [torch.from_numpy(nystrom.projection(gram, recipe.cutoff)).float() for gram in grams]
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(recipe.training.seed)
        seen = front(torch.from_numpy(own).to(device)).cpu()
        network = LandmarkNetwork(spaces, len(classes), recipe.layers, seen).to(device)
    wanted = torch.from_numpy(goals) if logits is None else torch.from_numpy(logits).float()
    history = fitting.fit(network, front, wanted.to(device), held, recipe.training)
    unseen = held.tolist() if dev is None else []
    return LandmarkModel(tuple(_learnt(sets, front)), network, tuple(classes), len(texts), history | {"held": unseen})


def _tenth(count: int, seed: int) -> Int[np.ndarray, " D"]:
    """Indices of a random tenth."""
    return np.sort(np.random.default_rng(seed).permutation(count)[: max(1, count // 10)])


def _sets(
    recipe: LandmarkRecipe, texts: Sequence[Passage], labels: Int[np.ndarray, " N"], own: Int[np.ndarray, " n"]
) -> list[LandmarkSet]:
    """The landmark sets of all kernels, from the texts at the indices `own`."""
    read, found = [texts[index] for index in own], []
    for number, kernel in enumerate(recipe.kernels):
        fitted = kernel.fit(read)
        for again in range(recipe.sets):
            seed = recipe.training.seed * 10_007 + number * recipe.sets + again
            found.append(_drawn(fitted, recipe, read, labels[own], own, seed))
    return found


def _drawn(
    kernel: Kernel,
    recipe: LandmarkRecipe,
    texts: Sequence[Passage],
    labels: Int[np.ndarray, " n"],
    own: Int[np.ndarray, " n"],
    seed: int,
) -> LandmarkSet:
    """Chooses the landmarks of one set."""

    def column(index: int) -> Float[np.ndarray, " n"]:
        return kernel(texts, [texts[index]])[:, 0]

    found = nystrom.chosen(recipe.choice, labels, recipe.landmarks, seed, column)
    return LandmarkSet(kernel, own[found], tuple(texts[index] for index in found), labels[found])


def _part(
    landmarks: LandmarkSet, texts: Sequence[Passage], joint: bool, device: str
) -> Float[Tensor, "N M"] | tuple[TrainedVectors, Tensor, Tensor]:
    """Similarities of all texts to one set, or what they are computed from where word vectors are trained."""
    kernel = landmarks.kernel
    if joint and isinstance(kernel, WordVectors):
        table = torch.from_numpy(kernel.vectors).float()
        trained = TrainedVectors(table, *kernel.read(landmarks.texts), kernel.shape, kernel.width)
        ids, mask = kernel.read(texts)
        return trained, ids.to(device), mask.to(device)
    return torch.from_numpy(kernel(texts, landmarks.texts)).float().to(device)


def _learnt(sets: Sequence[LandmarkSet], front: fitting.LikenessLayer) -> list[LandmarkSet]:
    """The sets with trained word vectors."""
    tables = iter([each.table.detach().double().cpu().numpy() for each in front.trained])  # type: ignore[operator]
    return [
        each
        if known is not None or not isinstance(each.kernel, WordVectors)
        else replace(each, kernel=replace(each.kernel, table=next(tables)))
        for each, known in zip(sets, front.known, strict=True)
    ]

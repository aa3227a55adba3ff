"""Landmark classifiers: texts are classified by their similarity to some training texts (Croce et al., 2018, 2019)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from assay.errors import AssayError, library_errors, unknown
from assay.files import write_text
from assay.influence.landmark_kernels import (
    Kernel,
    Passage,
    Passages,
    Spectrum,
    Subsequences,
    WordVectors,
)
from assay.models.config import Training
from assay.models.fit import Rows, State, Trainer
from assay.models.store import save_tensors
from assay.types import Logits

# Nyström method: which training texts are landmarks, and the space they span (Williams and Seeger, 2001).


Column = Callable[[int], Float[np.ndarray, " N"]]
"""How alike all texts are to one of them."""


def uniform(labels: Int[np.ndarray, " N"], count: int, seed: int, column: Column) -> Int[np.ndarray, " M"]:
    """Texts drawn uniformly."""
    return np.random.default_rng(seed).permutation(len(labels))[:count]


def balanced(labels: Int[np.ndarray, " N"], count: int, seed: int, column: Column) -> Int[np.ndarray, " M"]:
    """As many texts of each class as possible."""
    order = np.random.default_rng(seed).permutation(len(labels))
    rank = np.empty(len(labels), dtype=np.int64)  # of a text among those of its class
    for label in np.unique(labels):
        own = order[labels[order] == label]
        rank[own] = np.arange(len(own))
    return order[np.argsort(rank[order], kind="stable")][:count]


def spread(labels: Int[np.ndarray, " N"], count: int, seed: int, column: Column) -> Int[np.ndarray, " M"]:
    """Texts far from one another: each drawn by its squared distance to the nearest before (k-means++).

    For kernels that are 1 for a text and itself, the squared distance is 2 − 2 K (Arthur and Vassilvitskii, 2007).
    """
    random = np.random.default_rng(seed)
    chosen = [int(random.integers(len(labels)))]
    nearest = np.full(len(labels), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, np.maximum(0.0, 2 - 2 * column(chosen[-1])))
        nearest[chosen] = 0.0
        if nearest.sum() < 1e-12:  # only copies are left
            left = np.setdiff1d(np.arange(len(labels)), chosen)
            chosen += random.permutation(left)[: count - len(chosen)].tolist()
        else:
            chosen.append(int(random.choice(len(labels), p=nearest / nearest.sum())))
    return np.array(chosen)


CHOICES: dict[str, Callable[[Int[np.ndarray, " N"], int, int, Column], Int[np.ndarray, " M"]]] = {
    each.__name__: each for each in (uniform, balanced, spread)
}


def chosen(name: str, labels: Int[np.ndarray, " N"], count: int, seed: int, column: Column) -> Int[np.ndarray, " M"]:
    """Indices of `count` landmarks, or of all texts where there are fewer, in ascending order."""
    if name not in CHOICES:
        raise unknown("choice of landmarks", name, CHOICES)
    if count < 1 or not len(labels):
        raise AssayError("At least one landmark is needed, and a text that it can be.")
    return np.sort(CHOICES[name](labels, min(count, len(labels)), seed, column))


def projection(gram: Float[np.ndarray, "M M"], cutoff: float = 1e-10) -> Float[np.ndarray, "M K"]:
    """U S^-½ of K = U S Uᵀ: inner products of K(x, L) U S^-½ come nearest to the kernel.

    Directions with less than `cutoff` times the largest eigenvalue are left out; strongest first. The weaker the
    directions that are kept, the larger are the parts of landmarks that cancel each other.
    """
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    kept = np.flatnonzero(values > cutoff * max(values[-1], 0.0))[::-1]
    if not len(kept):
        raise AssayError(
            "The landmarks have nothing in common with one another or with themselves; take another kernel."
        )
    found: Float[np.ndarray, "M K"] = vectors[:, kept] / np.sqrt(values[kept])
    return found


# Landmark network: Nyström projection of similarities, and a feed-forward network above (Croce et al., 2018).


ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


@dataclass(frozen=True)
class Layers:
    """Options of the layers above the similarities; without biases, relevances of all landmarks sum to the logit."""

    hidden: tuple[int, ...] = (64,)  # none: the logits are linear in the space of the landmarks
    activation: str = "relu"
    bias: bool = False
    # differs from Croce et al. (2018), who take likenesses as they are: most of them is what all texts have in common.
    centred: bool = True  # what counts is how much more alike a text is than a training text is on average
    frozen: bool = False  # the way into the space of the landmarks is not trained
    dropout: float = 0.2

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise unknown("activation", self.activation, ACTIVATIONS)
        if any(size < 1 for size in self.hidden) or not 0 <= self.dropout < 1:
            raise AssayError("Hidden layers have sizes from 1, and dropout is a share from 0 to below 1.")


class LandmarkNetwork(nn.Module):
    """Logits from similarities to one or several sets of landmarks, each with a Nyström layer of its own.

    `seen` are likenesses that are usual; without any, likenesses are taken as they are.
    """

    usual: Tensor
    scale: Tensor

    def __init__(
        self,
        projections: Sequence[Float[Tensor, "_ _"]],
        classes: int,
        layers: Layers,
        seen: Float[Tensor, "N M"] | None = None,
    ) -> None:
        super().__init__()
        self.layers, self.sizes = layers, [len(each) for each in projections]
        self.projections = nn.ParameterList(
            [nn.Parameter(each, requires_grad=not layers.frozen) for each in projections]
        )
        sizes = [sum(each.shape[1] for each in projections), *layers.hidden, classes]
        self.linear = nn.ModuleList([nn.Linear(a, b, bias=layers.bias) for a, b in pairwise(sizes)])
        none = projections[0].new_zeros(sum(self.sizes))
        self.register_buffer("usual", none if seen is None or not layers.centred else seen.mean(0))
        self.register_buffer("scale", none.new_ones(()))
        if seen is not None:  # layers start for numbers of about 1
            with torch.no_grad():
                self.scale = self.projected(seen).square().mean().clamp(min=1e-12).rsqrt()

    @property
    def weights(self) -> list[Float[Tensor, "_ _"]]:
        """The matrices of the layers above the space of the landmarks."""
        return [each.weight for each in self.linear if isinstance(each, nn.Linear)]

    def projected(self, likeness: Float[Tensor, "B M"]) -> Float[Tensor, "B K"]:
        """The texts in the Nyström space of the landmarks."""
        parts = (likeness - self.usual).split(self.sizes, dim=1)  # type: ignore[no-untyped-call]
        found = [part @ each for part, each in zip(parts, self.projections, strict=True)]
        return torch.cat(found, dim=1) * self.scale

    def forward(self, likeness: Float[Tensor, "B M"]) -> Logits:
        x = self.projected(likeness)
        for number, linear in enumerate(self.linear):
            if number:
                x = F.dropout(ACTIVATIONS[self.layers.activation](x), self.layers.dropout, self.training)
            x = linear(x)
        return x


# Landmark classifier: its recipe, its landmarks and its network.


@dataclass(frozen=True)
class LandmarkRecipe:
    """All options that decide which classifier is trained, besides the texts (Croce et al., 2018)."""

    kernels: tuple[Kernel, ...] = (Spectrum(longest=2),)
    landmarks: int = 200  # of each set
    choice: str = "balanced"  # one of CHOICES
    sets: int = 1  # for each kernel; several make an ensemble
    cutoff: float = 1e-3  # directions with a smaller share of the largest eigenvalue are left out; see `projection`
    layers: Layers = field(default_factory=Layers)
    training: Training = field(default_factory=lambda: Training(epochs=60, patience=8))

    def __post_init__(self) -> None:
        if not self.kernels or self.sets < 1:
            raise AssayError("At least one kernel and one set of landmarks are needed.")


@dataclass(frozen=True)
class LandmarkSet:
    """Some training texts and the kernel that compares with them; `indices` are theirs among the training texts."""

    kernel: Kernel
    indices: Int[np.ndarray, " M"]
    texts: tuple[Passage, ...]
    labels: Int[np.ndarray, " M"]


@dataclass(frozen=True)
class LandmarkModel:
    """Sets of landmarks, and the network over similarities to them; `learnt` is the number of training texts."""

    sets: tuple[LandmarkSet, ...]
    network: LandmarkNetwork
    classes: tuple[str, ...]
    learnt: int
    history: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def indices(self) -> Int[np.ndarray, " M"]:
        """The index of each landmark among the training texts; one in several sets appears several times."""
        return np.concatenate([each.indices for each in self.sets])

    @cached_property
    def labels(self) -> Int[np.ndarray, " M"]:
        return np.concatenate([each.labels for each in self.sets])

    @cached_property
    def texts(self) -> tuple[Passage, ...]:
        return tuple(text for each in self.sets for text in each.texts)

    def likeness(self, texts: Passages) -> Float[Tensor, "N M"]:
        """The similarity of each text to each landmark."""
        parts = [torch.from_numpy(each.kernel(texts, each.texts)) for each in self.sets]
        return torch.cat(parts, dim=1).to(self.network.projections[0])

    def renumbered(self, order: Int[np.ndarray, " N"]) -> LandmarkModel:
        """The model with the training texts numbered as before they were put into this order."""
        sets = tuple(replace(each, indices=order[each.indices]) for each in self.sets)
        held = order[self.history["held"]].tolist()
        return replace(self, sets=sets, history={**self.history, "held": held})

    @torch.no_grad()
    def logits(self, texts: Passages) -> Float[Tensor, "N C"]:
        found: Tensor = self.network(self.likeness(texts))
        return found


# Training over similarities to landmarks, with early stopping.


Goals = Shaped[Tensor, "N ..."]
"""The right class of each text, [N], or the logits that are to be learnt, [N, C]."""


@dataclass(kw_only=True, eq=False)
class LandmarkTrainer(Trainer):
    """The training of a network on all indices but those of the `dev` texts."""

    network: LandmarkNetwork
    likeness: Float[Tensor, "T M"]  # of all texts
    goals: Shaped[Tensor, "T ..."]  # of all texts, as `Goals`
    train: Int[np.ndarray, " N"]
    dev: Int[np.ndarray, " D"]
    weights: Float[Tensor, " C"] | None

    def groups(self) -> list[Rows]:
        """As declared; the random state is set once, before the first epoch."""
        if self.state.epoch == 0:
            torch.manual_seed(self.options.seed)
        order = np.random.default_rng((self.options.seed, self.state.epoch + 1)).permutation(self.train)
        return np.split(order, range(self.options.batch_size, len(order), self.options.batch_size))

    def step(self, rows: Rows) -> Tensor:
        """As declared; the loss counts as much as the texts that it is of."""
        indices = torch.from_numpy(rows).to(self.goals.device)
        loss = self.update(lost(self.network(self.likeness[indices]), self.goals[indices], self.weights))
        steps = -(-len(self.train) // self.options.batch_size)
        return loss * (len(rows) * steps / len(self.train))

    @torch.no_grad()
    def judge(self) -> tuple[float, float]:
        """Accuracy (or agreement with the logits to be learnt) on dev texts, and the loss."""
        self.learner.eval()
        indices = torch.from_numpy(self.dev).to(self.goals.device)
        logits, goals = self.network(self.likeness[indices]), self.goals[indices]
        loss = float(lost(logits, goals))
        if goals.dim() > 1:
            return -loss, loss
        return float((logits.argmax(-1) == goals).double().mean()), loss


def fit(
    network: LandmarkNetwork,
    likeness: Float[Tensor, "T M"],
    goals: Goals,
    dev: Int[np.ndarray, " D"],
    training: Training,
) -> dict[str, object]:
    """Trains the network in place, and restores the weights of the best epoch; returns the history."""
    train = np.setdiff1d(np.arange(len(goals)), dev)
    parameters = [each for each in network.parameters() if each.requires_grad]
    state = LandmarkTrainer(
        learner=network,
        optimiser=torch.optim.Adam(parameters, lr=training.learning_rate, weight_decay=training.decay),
        options=training,
        lengths=np.ones(len(train), dtype=int),
        state=State(best_score=-float("inf")),
        network=network,
        likeness=likeness,
        goals=goals,
        train=train,
        dev=dev,
        weights=_class_weights(goals[train], training),
    ).run(title="landmarks")
    return {
        "epochs": state.epoch,
        "best_epoch": state.best_epoch,
        "dev_score": state.best_score,
        "losses": state.losses,
    }


def lost(logits: Logits, goals: Goals, weights: Float[Tensor, " C"] | None = None) -> Float[Tensor, ""]:
    """The loss: cross-entropy of classes, or the mean squared error of centred logits."""
    if goals.dim() == 1:
        return F.cross_entropy(logits, goals, weights)
    return F.mse_loss(logits - logits.mean(-1, keepdim=True), goals - goals.mean(-1, keepdim=True))


def _class_weights(goals: Goals, training: Training) -> Float[Tensor, " C"] | None:
    if goals.dim() > 1 or not training.balanced:
        return None
    counts = torch.bincount(goals).clamp(min=1).float()
    return counts.sum() / (len(counts) * counts)


# Trains landmark classifiers from texts and their classes.


def train(
    recipe: LandmarkRecipe,
    texts: Passages,
    labels: Int[np.ndarray, " N"],
    classes: Sequence[str],
    dev: tuple[Passages, Int[np.ndarray, " D"]] | None = None,
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
    sets = tuple(_sets(recipe, texts, labels, own))
    alike = [torch.from_numpy(each.kernel([*texts, *more], each.texts)) for each in sets]
    likeness = torch.cat(alike, dim=1).float().to(device)
    grams = [each.kernel(each.texts, each.texts) for each in sets]
    spaces = [torch.from_numpy(projection(gram, recipe.cutoff)).float() for gram in grams]
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(recipe.training.seed)
        network = LandmarkNetwork(spaces, len(classes), recipe.layers, likeness[own].cpu()).to(device)
    wanted = torch.from_numpy(goals) if logits is None else torch.from_numpy(logits).float()
    history = fit(network, likeness, wanted.to(device), held, recipe.training)
    unseen = held.tolist() if dev is None else []
    return LandmarkModel(sets, network, tuple(classes), len(texts), history | {"held": unseen})


def _tenth(count: int, seed: int) -> Int[np.ndarray, " D"]:
    """Indices of a random tenth."""
    return np.sort(np.random.default_rng(seed).permutation(count)[: max(1, count // 10)])


def _sets(
    recipe: LandmarkRecipe, texts: Passages, labels: Int[np.ndarray, " N"], own: Int[np.ndarray, " n"]
) -> Iterator[LandmarkSet]:
    """The landmark sets of all kernels, from the texts at the indices `own`."""
    known = [texts[index] for index in own]
    for number, kernel in enumerate(recipe.kernels):
        fitted = kernel.fit(known)

        def column(index: int, kernel: Kernel = fitted) -> Float[np.ndarray, " n"]:
            return kernel(known, [known[index]])[:, 0]

        for again in range(recipe.sets):
            seed = recipe.training.seed * 10_007 + number * recipe.sets + again
            found = chosen(recipe.choice, labels[own], recipe.landmarks, seed, column)
            yield LandmarkSet(fitted, own[found], tuple(known[index] for index in found), labels[own[found]])


# Saves and loads landmark classifiers: tensors as safetensors, everything else as JSON.


CARD, WEIGHTS = "landmarks.json", "landmarks.safetensors"
STORED = {each.__name__: each for each in (Spectrum, Subsequences, WordVectors)}


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
        else:
            written[each.name] = value
    return written


def _read(written: Mapping[str, Any], found: Mapping[str, Tensor]) -> Kernel:
    """The kernel from its JSON and tensors."""
    given: dict[str, Any] = {}
    for name, value in written.items():
        if isinstance(value, dict):
            given[name] = found[value["tensor"]].numpy()
        elif name == "stretches" and value is not None:
            given[name] = tuple(map(tuple, value))
        else:
            given[name] = tuple(value) if isinstance(value, list) else value
    kernel: Kernel = STORED[given.pop("kind")](**given)
    return kernel

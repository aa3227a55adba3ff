"""The training loop, with early stopping; an interrupted training resumes to the same final weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, vmap

from assay import progress
from assay.data.batches import Tokenised, by_tokens, collate, shuffled
from assay.models import budget
from assay.models.config import Training
from assay.models.objectives import Labels, Learning, Objective, heads
from assay.models.store import Checkpoint
from assay.models.textmodel import TextModel
from assay.models.walk import UnfusedOps
from assay.types import Batch

LABELS = Labels()
Rows = Int[np.ndarray, " n"]
"""Indices of training rows."""


@dataclass
class State:
    """The state of training besides tensors, as stored in a checkpoint."""

    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -1.0
    best_loss: float = float("inf")
    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)


@dataclass(kw_only=True, eq=False)
class Trainer(ABC):
    """A training: what learns, one step of it, and the score of an epoch; `run` is the loop.

    An epoch whose score is not a number is never the best; where all are such, the initial weights stay.
    """

    learner: nn.Module  # all that learns; a checkpoint stores it
    optimiser: torch.optim.Optimizer
    options: Training
    lengths: Int[np.ndarray, " N"]  # of the training rows
    state: State = field(default_factory=State)

    @abstractmethod
    def step(self, rows: Rows) -> float | Tensor:
        """One optimisation step on some rows; returns the loss before it."""

    @abstractmethod
    def judge(self) -> tuple[float, float]:
        """The dev score of an epoch, higher is better, and the dev loss that decides between equal scores."""

    @property
    def kept(self) -> nn.Module:
        """The part that is left with the weights of the best epoch."""
        return self.learner

    @property
    def epochs(self) -> int:
        """The number of epochs at most."""
        return self.options.epochs

    @property
    def started(self) -> bool:
        """Whether learning has begun, so that epochs without a better score count."""
        return self.state.best_epoch > 0

    @property
    def finished(self) -> bool:
        """Whether training is over: the last epoch, or no better score for `patience` epochs."""
        tired = self.started and self.state.epoch - self.state.best_epoch >= self.options.patience
        return tired or self.state.epoch >= self.epochs

    def groups(self) -> list[Rows]:
        """The rows of each step of the next epoch; seeds all its randomness."""
        return epoch_groups(self.state.epoch, self.lengths, self.options)

    def prepare(self) -> None:
        """What is done before the steps of an epoch."""
        self.kept.train()

    def better(self, score: float, loss: float) -> bool:
        """Whether an epoch is the best so far; a perfect ranking can still grow surer."""
        return (score, -loss) > (self.state.best_score, -self.state.best_loss)

    def advanced(self, loss: float, score: float, dev_loss: float) -> State:
        """The state after an epoch."""
        epoch, state = self.state.epoch + 1, self.state
        history = replace(state, epoch=epoch, losses=[*state.losses, loss], scores=[*state.scores, score])
        if not self.better(score, dev_loss):
            return history
        return replace(history, best_epoch=epoch, best_score=score, best_loss=dev_loss)

    def status(self, loss: float | Tensor) -> str:
        """The mean loss so far, in words; one on a GPU is not waited for."""
        return f"loss {loss:.3f}" if isinstance(loss, float) else ""

    def report(self) -> str:
        """The last epoch, in words."""
        return f"{self.status(self.state.losses[-1])}  dev {self.state.scores[-1]:.3f}"

    def update(self, loss: Tensor) -> Tensor:
        """Steps down the gradient of a loss, clipped; returns the loss without its graph."""
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.clip()
        self.optimiser.step()
        return loss.detach()

    def clip(self) -> None:
        """Shrinks the gradient to the largest norm of the options."""
        if self.options.clip is not None:
            every = [parameter for group in self.optimiser.param_groups for parameter in group["params"]]
            nn.utils.clip_grad_norm_(every, self.options.clip)

    def run(self, checkpoint: Checkpoint | None = None, title: str = "epoch") -> State:
        """Trains in place, leaves what is kept with the weights of the best epoch, and returns the history."""
        best = copied(self.kept)
        if checkpoint is not None and checkpoint.path.exists():
            saved, best = checkpoint.restore(self.learner, self.optimiser)
            self.state = replace(self.state, **saved)
        with progress.bar("status") as shown, torch.random.fork_rng():
            while not self.finished:
                groups = self.groups()
                task = shown.add_task(f"{title} {self.state.epoch + 1}/{self.epochs}", total=len(groups), status="")
                self.prepare()
                total: float | Tensor = 0.0
                for done, group in enumerate(groups, start=1):
                    total = total + self.step(group)
                    shown.update(task, advance=1, status=self.status(total / done))
                self.state = self.advanced(float(total) / len(groups), *self.judge())
                if self.state.best_epoch == self.state.epoch:
                    best = copied(self.kept)
                if checkpoint is not None:
                    checkpoint.save(self.learner, self.optimiser, best, asdict(self.state))
                shown.update(task, status=self.report())
        if best:  # the checkpoints of old of what is not judged hold none
            self.kept.load_state_dict(best)
        self.kept.eval()
        return self.state


def copied(module: nn.Module) -> dict[str, Tensor]:
    """A copy of all weights."""
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def epoch_groups(epoch: int, lengths: Int[np.ndarray, " N"], options: Training) -> list[Rows]:
    """Shuffles an epoch: the rows of each step; seeds all randomness of the epoch."""
    torch.manual_seed(options.seed * 10_007 + epoch)
    return shuffled(lengths, options.batch_size, (options.seed, epoch))


@dataclass(kw_only=True, eq=False)
class ClassifierTrainer(Trainer):
    """The training of a classifier by an objective, with the auxiliary heads that learn along."""

    network: TextModel
    train: Sequence[Tokenised]
    dev: Sequence[Tokenised]
    objective: Objective
    learning: Learning
    weights: Float[Tensor, " C"] | None  # of the classes

    @classmethod
    def of(
        cls,
        network: TextModel,
        train: Sequence[Tokenised],
        options: Training,
        objective: Objective = LABELS,
        dev: Sequence[Tokenised] = (),
    ) -> ClassifierTrainer:
        """Before the first step."""
        learning = Learning(options, heads(network, options))
        learner = nn.ModuleDict({"network": network, "heads": learning.heads})
        return cls(
            learner=learner,
            optimiser=optimiser_of(learner, options),
            options=options,
            lengths=np.array([len(row.ids) for row in train]),
            network=network,
            train=train,
            dev=dev,
            objective=objective,
            learning=learning,
            weights=class_weights(train, network, options),
        )

    @property
    def kept(self) -> nn.Module:
        return self.network

    @property
    def started(self) -> bool:
        return self.state.best_score > self.objective.begun

    def judge(self) -> tuple[float, float]:
        return self.objective.judged(self.network, self.dev)

    def step(self, rows: Rows, shares: Float[Tensor, " n"] | None = None) -> float:
        """As declared; `shares` say how much of each row's loss counts, though a batch is divided by whole rows."""
        given, device = [self.train[index] for index in rows], self.network.device
        labels = torch.tensor([row.label for row in given], device=device)
        total = len(rows) if self.weights is None else self.weights[labels].sum()
        self.optimiser.zero_grad()
        loss = 0.0
        for group in by_tokens(self.lengths[rows], budget.room(device, "training")):  # long texts in turn
            indices = sorted(group)
            batch = collate([given[index] for index in indices], self.network.classes).to(device)
            losses = self.objective.losses(self.network, batch, self.learning)
            if shares is not None:
                losses = losses * shares[indices].to(losses)
            part = (losses if self.weights is None else losses * self.weights[batch.labels]).sum() / total
            part.backward()  # type: ignore[no-untyped-call]
            loss += float(part.detach())
        self.clip()
        self.optimiser.step()
        return loss


class _Reading(nn.Module):
    """A module with a trainer's parameters whose call is any function, so that they can be replaced for it."""

    def __init__(self, learner: nn.Module) -> None:
        super().__init__()
        self.learner = learner

    def forward(self, read: Callable[..., Tensor], *given: Tensor) -> Tensor:
        return read(*given)


@dataclass(eq=False)
class Members:
    """Trainings of networks of one shape, stepped together: parameters are stacked, S of each (vmap).

    Each member comes to the weights of a training of its own, up to rounding. Where all read the same rows, random
    numbers are drawn once, as each would draw them with one seed; members with rows of their own must draw none.
    """

    trainer: ClassifierTrainer  # any of them; its parameters do not count
    parameters: dict[str, Float[Tensor, "S ..."]]
    optimiser: torch.optim.Adam

    @classmethod
    def of(cls, trainers: Sequence[ClassifierTrainer]) -> Members:
        """Before the first step."""
        first, names = trainers[0], dict(trainers[0].learner.named_parameters())
        every = [dict(each.learner.named_parameters()) for each in trainers]
        stacked = {
            name: torch.stack([own[name].detach() for own in every]).requires_grad_(names[name].requires_grad)
            for name in names
        }
        trained = {id(parameter): stacked[name] for name, parameter in names.items()}
        groups = [
            group | {"params": [trained[id(each)] for each in group["params"]]}
            for group in first.optimiser.param_groups
        ]
        return cls(first, stacked, torch.optim.Adam(groups))

    @property
    def count(self) -> int:
        """The number of members."""
        return len(next(iter(self.parameters.values())))

    def logits(self, batch: Batch) -> Float[Tensor, "S B C"]:
        """The logits of each network."""
        network = self.trainer.network.eval()
        with torch.no_grad():
            return self._each(lambda: network(network.embed(batch), batch).logits)

    def step(self, rows: Int[np.ndarray, "*S n"], shares: Float[Tensor, "S n"] | None = None) -> None:
        """One optimisation step of each on some rows, the same for all or its own; `shares` weigh their losses."""
        trainer, apart = self.trainer, rows.ndim > 1
        device = trainer.network.device
        longest = trainer.lengths[rows].max(0) if apart else trainer.lengths[rows]
        labels = torch.tensor([trainer.train[index].label for index in rows.flat], device=device)
        own = torch.ones_like(labels) if trainer.weights is None else trainer.weights[labels]
        whole = own.double().reshape(rows.shape)
        counted = whole / whole.sum(-1, keepdim=True)
        self.optimiser.zero_grad()
        for group in by_tokens(longest, budget.room(device, "training", self.count if apart else 1)):
            indices = sorted(group)
            chosen = rows[..., indices]
            batch = collate([trainer.train[index] for index in chosen.flat], trainer.network.classes).to(device)
            places = (torch.arange(chosen.size, device=device).reshape(chosen.shape),) if apart else ()
            losses = self._each(partial(self._losses, batch), *places)
            part = counted[..., indices] if shares is None else counted[..., indices] * shares[:, indices].to(device)
            (losses * part.to(losses)).sum().backward()  # type: ignore[no-untyped-call]
        self._clip()
        self.optimiser.step()

    def _losses(self, batch: Batch, *places: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        trainer = self.trainer
        return trainer.objective.losses(trainer.network, batch[places[0]] if places else batch, trainer.learning)

    def _each(self, read: Callable[..., Tensor], *given: Tensor) -> Tensor:
        """What a function of the network returns for each member."""
        module = _Reading(self.trainer.learner)
        stacked = {f"learner.{name}": each for name, each in self.parameters.items()}
        with UnfusedOps():
            each = vmap(lambda own, *places: functional_call(module, own, (read, *places)), randomness="same")
            found: Tensor = each(stacked, *given)
        return found

    def _clip(self) -> None:
        """Shrinks each member's gradient to the largest norm of the options."""
        limit = self.trainer.options.clip
        found = [each.grad for each in self.parameters.values() if each.grad is not None]
        if limit is not None:
            norms = torch.stack([each.flatten(1).norm(dim=1) for each in found]).norm(dim=0)
            share = (limit / (norms + 1e-6)).clamp(max=1.0)  # as torch.nn.utils.clip_grad_norm_
            for each in found:
                each.mul_(share.view(-1, *[1] * (each.dim() - 1)))


def fit(
    network: TextModel,
    train: Sequence[Tokenised],
    dev: Sequence[Tokenised],
    options: Training,
    checkpoint: Checkpoint | None = None,
    objective: Objective = LABELS,
) -> State:
    """Trains `network` in place, leaves it with the weights of the best epoch, and returns the training curve."""
    return ClassifierTrainer.of(network, train, options, objective, dev).run(checkpoint)


def optimiser_of(learner: nn.ModuleDict, options: Training) -> torch.optim.Adam:
    """Adam over all trainable parameters; embeddings have weight decay only where the options say so."""
    embedding: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in learner.named_parameters():
        (embedding if name.startswith("network.embedding.") else others).append(parameter)
    own = options.decay if options.decay_embeddings else 0.0
    groups = [{"params": embedding, "weight_decay": own}, {"params": others, "weight_decay": options.decay}]
    return torch.optim.Adam(groups, lr=options.learning_rate, amsgrad=True, fused=True)


def class_weights(train: Sequence[Tokenised], network: TextModel, options: Training) -> Float[Tensor, " C"] | None:
    """The weight of each class in the loss, where classes are to be balanced."""
    if not options.balanced:
        return None
    counts = np.bincount([row.label for row in train], minlength=network.classes)
    weights = len(train) / (len(counts) * np.maximum(counts, 1))
    return torch.tensor(weights, dtype=torch.float32, device=network.device)

"""The training loop, with early stopping; an interrupted training resumes to the same final weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay import progress
from assay.data.batches import Tokenised, by_tokens, collate, shuffled
from assay.models import budget
from assay.models.config import Training
from assay.models.objectives import Labels, Learning, Objective, heads
from assay.models.store import Checkpoint
from assay.models.textmodel import TextModel

LABELS = Labels()


@dataclass
class State:
    """The state of training besides tensors, as stored in a checkpoint."""

    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -1.0
    best_loss: float = float("inf")
    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def finished(self, options: Training, begun: float) -> bool:
        """Whether training is over: the last epoch, or no improvement for `patience` epochs once above `begun`."""
        tired = self.best_score > begun and self.epoch - self.best_epoch >= options.patience
        return tired or self.epoch >= options.epochs


def fit(
    network: TextModel,
    train: Sequence[Tokenised],
    dev: Sequence[Tokenised],
    options: Training,
    checkpoint: Checkpoint | None = None,
    objective: Objective = LABELS,
) -> State:
    """Trains `network` in place, leaves it with the weights of the best epoch, and returns the training curve."""
    learning = Learning(options, heads(network, options))
    learner = nn.ModuleDict({"network": network, "heads": learning.heads})
    optimiser = optimiser_of(learner, options)
    state, best = State(), {name: tensor.clone() for name, tensor in network.state_dict().items()}
    if checkpoint is not None and checkpoint.path.exists():
        saved, best = checkpoint.restore(learner, optimiser)
        state = State(**saved)
    step = stepper(network, optimiser, class_weights(train, network, options), objective, learning)
    lengths = np.array([len(row.ids) for row in train])
    with progress.bar("status") as shown, torch.random.fork_rng():
        while not state.finished(options, objective.begun):
            groups = begun(state.epoch, lengths, options)
            task = shown.add_task(f"epoch {state.epoch + 1}/{options.epochs}", total=len(groups), status="")
            network.train()
            loss = 0.0
            for done, group in enumerate(groups, start=1):
                loss += step([train[index] for index in group])
                shown.update(task, advance=1, status=f"loss {loss / done:.3f}")
            score, dev_loss = objective.judged(network, dev)
            state = _advanced(state, loss / len(groups), score, dev_loss)
            if state.best_epoch == state.epoch:
                best = {name: tensor.clone() for name, tensor in network.state_dict().items()}
            if checkpoint is not None:
                checkpoint.save(learner, optimiser, best, asdict(state))
            shown.update(task, status=f"loss {state.losses[-1]:.3f}  dev {score:.3f}")
    network.load_state_dict(best)
    network.eval()
    return state


def _advanced(state: State, loss: float, score: float, dev_loss: float) -> State:
    epoch = state.epoch + 1
    best = (state.best_epoch, state.best_score, state.best_loss)
    if (score, -dev_loss) > (state.best_score, -state.best_loss):  # a perfect ranking can still grow surer
        best = (epoch, score, dev_loss)
    return State(epoch, *best, [*state.losses, loss], [*state.scores, score])


def begun(epoch: int, lengths: Int[np.ndarray, " N"], options: Training) -> list[Int[np.ndarray, " n"]]:
    """Shuffles an epoch: the rows of each step; seeds all randomness of the epoch."""
    torch.manual_seed(options.seed * 10_007 + epoch)
    return shuffled(lengths, options.batch_size, (options.seed, epoch))


def optimiser_of(learner: nn.ModuleDict, options: Training) -> torch.optim.Adam:
    """Adam over all trainable parameters; embeddings have weight decay only where the options say so."""
    embedding: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in learner.named_parameters():
        (embedding if name.startswith("network.embedding.") else others).append(parameter)
    own = options.decay if options.decay_embeddings else 0.0
    groups = [{"params": embedding, "weight_decay": own}, {"params": others, "weight_decay": options.decay}]
    return torch.optim.Adam(groups, lr=options.learning_rate, amsgrad=True, fused=True)


@runtime_checkable
class Step(Protocol):
    """One optimisation step on some rows, in place; returns the loss before the step.

    `shares` says how much of each row's loss counts; what a batch is divided by stays that of whole rows.
    """

    def __call__(self, rows: Sequence[Tokenised], shares: Float[Tensor, " n"] | None = None) -> float: ...


def stepper(
    network: TextModel, optimiser: torch.optim.Adam, weights: Tensor | None, objective: Objective, learning: Learning
) -> Step:
    """The training step of an objective; `weights` are those of the classes."""
    device = network.device

    def step(rows: Sequence[Tokenised], shares: Float[Tensor, " n"] | None = None) -> float:
        labels = torch.tensor([row.label for row in rows], device=device)
        total = len(rows) if weights is None else weights[labels].sum()
        optimiser.zero_grad()
        loss = 0.0
        lengths = np.array([len(row.ids) for row in rows])
        for group in by_tokens(lengths, budget.room(device, "training")):  # long texts in turn
            indices = sorted(group)
            batch = collate([rows[index] for index in indices], network.classes).to(device)
            losses = objective.losses(network, batch, learning)
            if shares is not None:
                losses = losses * shares[indices].to(losses)
            part = (losses if weights is None else losses * weights[batch.labels]).sum() / total
            part.backward()  # type: ignore[no-untyped-call]
            loss += float(part.detach())
        if learning.options.clip is not None:
            every = [parameter for group in optimiser.param_groups for parameter in group["params"]]
            nn.utils.clip_grad_norm_(every, learning.options.clip)
        optimiser.step()
        return loss

    return step


def class_weights(train: Sequence[Tokenised], network: TextModel, options: Training) -> Float[Tensor, " C"] | None:
    """The weight of each class in the loss, where classes are to be balanced."""
    if not options.balanced:
        return None
    counts = np.bincount([row.label for row in train], minlength=network.classes)
    weights = len(train) / (len(counts) * np.maximum(counts, 1))
    return torch.tensor(weights, dtype=torch.float32, device=network.device)

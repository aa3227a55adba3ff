"""Training with early stopping; killed at any moment, it goes on to the same final weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay import progress
from assay.data.batches import Tokenised, by_tokens, collate, shuffled
from assay.errors import AssayError
from assay.metrics.performance import accuracy, auc
from assay.models.checkpoints import Checkpoint
from assay.models.network import Network

TRAINING_TOKENS = {"cpu": 8_192, "cuda": 65_536}  # read at once, whatever the number of texts
EVALUATION_TOKENS = {"cpu": 16_384, "cuda": 131_072}
LEARNING = 0.6  # some tasks stay at chance, an AUC of 0.5, for several epochs before they are learnt


@dataclass(frozen=True)
class Training:
    """How a classifier is trained; the defaults are those of Jain and Wallace (2019), with early stopping."""

    epochs: int = 20
    patience: int = 3  # epochs without a better dev score before stopping
    batch_size: int = 32
    learning_rate: float = 1e-3
    decay: float = 1e-5  # L2, on everything but the embeddings
    clip: float | None = 5.0  # largest norm of a gradient
    balanced: bool = True  # weigh classes by the inverse of their frequency
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.epochs, self.patience, self.batch_size) < 1:
            raise AssayError("Epochs, patience and batch size are whole numbers from 1.")
        if self.seed < 0:
            raise AssayError(f"A seed is a whole number from 0, not {self.seed}.")


@dataclass
class State:
    """Where training stands; everything a checkpoint must hold besides tensors."""

    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -1.0
    best_loss: float = float("inf")
    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def finished(self, options: Training) -> bool:
        """At the last epoch, or when a model that has begun to learn gets no better."""
        tired = self.best_score > LEARNING and self.epoch - self.best_epoch >= options.patience
        return tired or self.epoch >= options.epochs


def fit(
    network: Network,
    train: Sequence[Tokenised],
    dev: Sequence[Tokenised],
    options: Training,
    checkpoint: Checkpoint | None = None,
) -> State:
    """Trains `network` in place, leaves it with the weights of the best epoch, and returns the course of training."""
    optimiser = _optimiser(network, options)
    state, best = State(), {name: tensor.clone() for name, tensor in network.state_dict().items()}
    if checkpoint is not None and checkpoint.path.exists():
        saved, best = checkpoint.restore(network, optimiser)
        state = State(**saved)
    step = _stepper(network, optimiser, _class_weights(train, network, options), options)
    lengths = np.array([len(row.ids) for row in train])
    with progress.bar("status") as shown, torch.random.fork_rng():
        while not state.finished(options):
            torch.manual_seed(options.seed * 10_007 + state.epoch)
            groups = shuffled(lengths, options.batch_size, (options.seed, state.epoch))
            task = shown.add_task(f"epoch {state.epoch + 1}/{options.epochs}", total=len(groups), status="")
            network.train()
            loss = 0.0
            for done, group in enumerate(groups, start=1):
                loss += step([train[place] for place in group])
                shown.update(task, advance=1, status=f"loss {loss / done:.3f}")
            score, dev_loss = judged(network, dev)
            state = _advanced(state, loss / len(groups), score, dev_loss)
            if state.best_epoch == state.epoch:
                best = {name: tensor.clone() for name, tensor in network.state_dict().items()}
            if checkpoint is not None:
                checkpoint.save(network, optimiser, best, asdict(state))
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


def _optimiser(network: Network, options: Training) -> torch.optim.Adam:
    embedding = list(network.embedding.parameters())
    others = [p for name, p in network.named_parameters() if not name.startswith("embedding.")]
    groups = [{"params": embedding, "weight_decay": 0.0}, {"params": others, "weight_decay": options.decay}]
    return torch.optim.Adam(groups, lr=options.learning_rate, amsgrad=True, fused=True)


def _stepper(
    network: Network, optimiser: torch.optim.Adam, weights: Tensor | None, options: Training
) -> Callable[[Sequence[Tokenised]], float]:
    device = network.decoder.weight.device

    def step(rows: Sequence[Tokenised]) -> float:
        labels = torch.tensor([row.label for row in rows], device=device)
        total = len(rows) if weights is None else weights[labels].sum()
        optimiser.zero_grad()
        loss = 0.0
        lengths = np.array([len(row.ids) for row in rows])
        for group in by_tokens(lengths, TRAINING_TOKENS.get(device.type, 8_192)):  # long texts in turn
            batch = collate([rows[place] for place in sorted(group)], network.decoder.out_features).to(device)
            logits = network(network.embed(batch), batch).logits
            part = nn.functional.cross_entropy(logits, batch.labels, weight=weights, reduction="sum") / total
            part.backward()  # type: ignore[no-untyped-call]
            loss += float(part.detach())
        if options.clip is not None:
            nn.utils.clip_grad_norm_(network.parameters(), options.clip)
        optimiser.step()
        return loss

    return step


def _class_weights(train: Sequence[Tokenised], network: Network, options: Training) -> Tensor | None:
    if not options.balanced:
        return None
    counts = np.bincount([row.label for row in train], minlength=network.decoder.out_features)
    weights = len(train) / (len(counts) * np.maximum(counts, 1))
    return torch.tensor(weights).to(network.decoder.weight)


@torch.no_grad()
def predict(network: Network, rows: Sequence[Tokenised]) -> Float[np.ndarray, "N C"]:
    """The class probabilities of each row, in the order given."""
    was_training, device = network.training, network.decoder.weight.device
    network.eval()
    answer = np.zeros((len(rows), network.decoder.out_features))
    lengths = np.array([len(row.ids) for row in rows])
    for group in by_tokens(lengths, EVALUATION_TOKENS.get(device.type, 16_384)):
        batch = collate([rows[place] for place in group], network.decoder.out_features).to(device)
        answer[group] = network(network.embed(batch), batch).probabilities.double().cpu().numpy()
    network.train(was_training)
    return answer


def judged(network: Network, rows: Sequence[Tokenised]) -> tuple[float, float]:
    """The AUC (averaged over classes), or the accuracy where only one class occurs; and the cross-entropy."""
    labels = np.array([row.label for row in rows])
    probabilities = predict(network, rows)
    score = auc(labels, probabilities)
    if not np.isfinite(score):
        score = accuracy(labels, probabilities.argmax(-1))
    chosen = probabilities[np.arange(len(labels)), labels]
    return score, float(-np.log(np.maximum(chosen, 1e-12)).mean())

"""Trains an encoder–decoder by teacher forcing; an interrupted training resumes to the same weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from assay import progress
from assay.data.batches import by_tokens
from assay.models import budget
from assay.models.config import Training
from assay.models.fit import State, begun
from assay.models.store import Checkpoint
from assay.rationales.text.network import EncoderDecoder
from assay.rationales.text.pairs import Row, Sequences, together


def fit(
    network: EncoderDecoder,
    train: Sequence[Row],
    dev: Sequence[Row],
    options: Training,
    checkpoint: Checkpoint | None = None,
) -> State:
    """Trains in place and restores the weights of the epoch with the lowest dev loss; returns the history.

    The learning rate falls in a straight line from that of the options to a tenth of it.
    """
    optimiser = torch.optim.AdamW(network.parameters(), lr=options.learning_rate, weight_decay=options.decay)
    state, best = State(best_score=-float("inf")), _copied(network)
    if checkpoint is not None and checkpoint.path.exists():
        saved, best = checkpoint.restore(network, optimiser)
        state = State(**saved)
    lengths = np.array([len(row.source) + len(row.target) for row in train])
    with progress.bar("status") as shown, torch.random.fork_rng():
        while not state.finished(options, -float("inf")):
            groups = begun(state.epoch, lengths, options)
            task = shown.add_task(f"epoch {state.epoch + 1}/{options.epochs}", total=len(groups), status="")
            optimiser.param_groups[0]["lr"] = options.learning_rate * (1 - 0.9 * state.epoch / options.epochs)
            network.train()
            total = torch.zeros((), device=network.device)
            for group in groups:
                total += _stepped(network, optimiser, [train[index] for index in group], options)
                shown.advance(task)
            loss = judged(network, dev)
            state = _advanced(state, float(total) / len(groups), loss)
            if state.best_epoch == state.epoch:
                best = _copied(network)
            if checkpoint is not None:
                checkpoint.save(network, optimiser, best, asdict(state))
            shown.update(task, status=f"loss {state.losses[-1]:.3f}  dev {loss:.3f}")
    network.load_state_dict(best)
    network.eval()
    return state


def _stepped(network: EncoderDecoder, optimiser: torch.optim.AdamW, rows: Sequence[Row], options: Training) -> Tensor:
    """One gradient step; returns the mean loss of a word."""
    batch = together(rows).to(network.device)
    with precision(network.device):
        likelihood = network.likelihood(batch)
    loss = -likelihood.sum() / (batch.target != 0).sum()
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    if options.clip is not None:
        nn.utils.clip_grad_norm_(network.parameters(), options.clip)
    optimiser.step()
    return loss.detach()


def _advanced(state: State, loss: float, dev_loss: float) -> State:
    epoch, best = state.epoch + 1, (state.best_epoch, state.best_score, state.best_loss)
    if dev_loss < state.best_loss:
        best = (epoch, -dev_loss, dev_loss)
    return State(epoch, *best, [*state.losses, loss], [*state.scores, -dev_loss])


def _copied(network: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def precision(device: torch.device) -> torch.autocast:
    """Context manager: autocast to bfloat16 on a GPU, nothing elsewhere."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def batches(network: EncoderDecoder, rows: Sequence[Row]) -> Iterator[tuple[Int[np.ndarray, " n"], Sequences]]:
    """Batches of rows of like length on the network's device, with their indices."""
    lengths = np.array([len(row.source) for row in rows])
    for group in by_tokens(lengths, budget.room(network.device, "likelihood")):
        yield group, together([rows[index] for index in group]).to(network.device)


@torch.no_grad()
def judged(network: EncoderDecoder, rows: Sequence[Row]) -> float:
    """The mean loss of a word."""
    network.eval()
    total, words = torch.zeros((), device=network.device), 0
    for group, batch in batches(network, rows):
        with precision(network.device):
            total -= network.likelihood(batch).sum()
        words += sum(len(rows[index].target) for index in group)
    return float(total) / words

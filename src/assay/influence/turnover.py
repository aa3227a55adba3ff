"""Turn-over dropout: a dropout mask for each training example, so that part of the network never learns from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from assay import progress
from assay.errors import AssayError
from assay.influence.replay import Learner, micro_batches
from assay.influence.setting import Indices, Influence, Labels, Scores, Setting, refuse
from assay.influence.stories import CHANGE
from assay.influence.targets import target
from assay.influence.training_run import TrainingRun
from assay.models.network import Network
from assay.stories import with_story

CELLS = 2**22  # logits held at once


@with_story("Turn-over dropout", "Kobayashi et al. (2020)", like=CHANGE)
@dataclass(frozen=True)
class TurnoverDropout:
    """The query's target in the subnetwork that never saw an example, less that in the one that did.

    Kobayashi et al. (2020), Efficient estimation of influence of a training instance. While the network learns from
    an example, the same units of what the decoder reads are always switched off, drawn by the example's number; the
    network with just these units on has not learnt from it. That holds of the weights of the decoder alone: an example
    leaks through its bias, through decay, through means of gradients that Adam goes on to use, and through all layers
    below, which it teaches by way of the units that are on.

    It needs a network that was trained so; without one it trains it, and speaks of that network, not of the setting's.
    """

    # differs from Kobayashi et al. (2020), whose mask and its opposite are both scaled by one keep rate: here each part
    # is scaled by its own size, so that both are on one scale; and the keep rate is what it says it is

    keep: float = 0.5  # the share of units that learn from an example
    seed: int = 0
    networks: int = 1  # that are trained, each with other masks; the mean is taken, and more than one give an error
    network: Network | None = field(default=None, compare=False, repr=False)  # trained by `train` with the same options

    def __post_init__(self) -> None:
        if self.networks < 1:
            raise AssayError("Turn-over dropout trains one network or more.")
        if not 0 < self.keep < 1:
            raise AssayError(
                f"The share of units that learn from an example must be between 0 and 1, got {self.keep:g}."
            )

    def unfit(self, setting: Setting) -> str | None:
        if not isinstance(setting.network, Network):
            return "turn-over dropout needs a network of ours, with a linear decoder"
        if self.network is None and setting.untrainable:
            return f"{setting.untrainable}, so none can be trained with turn-over dropout"
        return None

    def masks(self, numbers: Labels, units: int) -> Bool[np.ndarray, "N P"]:
        """The dropout mask of each example, a hash of its number."""
        rows, columns = numbers.astype(np.uint64)[:, None], np.arange(units, dtype=np.uint64)[None]
        with np.errstate(over="ignore"):
            drawn = mixed(mixed(mixed(np.full((1, 1), self.seed, dtype=np.uint64)) ^ rows) ^ columns)
        return drawn < np.uint64(int(self.keep * 2**64))

    def train(self, training_run: TrainingRun) -> Network:
        """Trains a network with turn-over dropout."""
        if not isinstance(training_run.network, Network):
            raise AssayError("Turn-over dropout needs a network of ours, with a linear decoder.")
        with torch.random.fork_rng(), progress.bar() as shown:
            learner = Learner.of(training_run)
            network = learner.network
            assert isinstance(network, Network)
            task = shown.add_task("training with turn-over dropout", total=training_run.steps)
            for group in training_run.groups():
                learner.optimiser.zero_grad()
                on = torch.from_numpy(self.masks(group, network.decoder.in_features))
                for micro_batch in micro_batches(training_run, group, learner.weights):
                    with switched(network.decoder, on[micro_batch.indices] / self.keep):
                        (learner.losses(micro_batch) * micro_batch.weights).sum().backward()  # type: ignore[no-untyped-call]
                if training_run.training.clip is not None:
                    nn.utils.clip_grad_norm_(learner.parameters.values(), training_run.training.clip)
                learner.optimiser.step()
                shown.advance(task)
        return network.eval()

    def __call__(self, setting: Setting) -> Influence:
        refuse(self.unfit(setting))
        made = [(self, self.network)] if self.network is not None else list(self._made(setting.training_run))
        found = [method._scores(setting, network) for method, network in made]
        scores = np.stack(found)
        errors = scores.std(0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else None
        notes = {
            "model": "trained with turn-over dropout, not the one that was given",
            "apart": "the decoder's weights",
        }
        network = made[0][1]
        return Influence(scores.mean(0), network.decoder.weight.numel() / network.parameter_count, errors, notes)

    def _made(self, training_run: TrainingRun | None) -> Iterator[tuple[TurnoverDropout, Network]]:
        """Networks trained now, each with its own masks."""
        assert training_run is not None
        for number in range(self.networks):
            method = replace(self, seed=self.seed + number)
            yield method, method.train(training_run)

    def _scores(self, setting: Setting, network: Network) -> Scores:
        """Scores by one network that was trained with these masks."""
        decoder = network.decoder
        on = torch.from_numpy(self.masks(np.arange(len(setting.train)), decoder.in_features)).to(decoder.weight)
        scores = setting.zeros()
        for indices, pooled, beside in _pooled(network, setting):
            for start in range(0, len(on), step := max(1, CELLS // (len(indices) * network.classes))):
                part = on[start : start + step]
                seen = decoded(decoder, pooled, part / self.keep) + beside
                unseen = decoded(decoder, pooled, (1 - part) / (1 - self.keep)) + beside
                change = self._targets(setting, indices, unseen) - self._targets(setting, indices, seen)
                scores[indices, start : start + step] = change.double().cpu().numpy()
        return scores

    def _targets(self, setting: Setting, indices: Indices, logits: Float[Tensor, "n N C"]) -> Tensor:
        classes = torch.from_numpy(setting.classes[indices]).to(logits.device)[:, None].expand(logits.shape[:2])
        return target(setting.target)(logits.flatten(0, 1), classes.flatten()).view(logits.shape[:2])


@torch.no_grad()
def decoded(decoder: nn.Linear, pooled: Float[Tensor, "n P"], on: Float[Tensor, "N P"]) -> Float[Tensor, "n N C"]:
    """The logits of each query under each mask, without the bias."""
    return torch.stack([(pooled * row) @ on.T for row in decoder.weight], dim=-1)


Pooled = tuple[Indices, Float[Tensor, "n P"], Float[Tensor, "n 1 C"]]


def _pooled(network: Network, setting: Setting) -> Iterator[Pooled]:
    """Batches of queries: indices, inputs of the decoder, and what is added to its logits (bias and more)."""
    for indices, batch in setting.batches(setting.queries):
        with torch.no_grad():
            states = network.states(network.embed(batch), batch)
            weights = network.attend(states, batch)
            pooled = network.pooled(states, weights)
            barred = network.decode(states, weights) - network.decoder(pooled)  # 0, or classes that cannot be right
            beside = barred + network.decoder.bias
        yield indices, pooled, beside[:, None]


@contextmanager
def switched(decoder: nn.Linear, units: Float[Tensor, "*n P"]) -> Iterator[None]:
    """Context manager: multiplies the inputs of the decoder by these numbers."""
    hook = decoder.register_forward_pre_hook(lambda _, inputs: (inputs[0] * units.to(inputs[0]),))
    try:
        yield
    finally:
        hook.remove()


def mixed(numbers: np.ndarray) -> np.ndarray:
    """A 64-bit hash of integers; Steele et al. (2014), SplitMix."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: np.ndarray = numbers ^ (numbers >> np.uint64(31))
    return result

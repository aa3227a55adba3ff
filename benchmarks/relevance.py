"""Prints the speed of relevance propagation through the BiLSTM beside a plain version, sentence by sentence.

The plain version is the formula of Arras et al. (2017) in numpy: each sum hands its relevance down through
a matrix of shares, from the last step of a text to the first.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
import warnings
from dataclasses import replace

import captum.attr
import numpy as np
import torch
from torch import Tensor

from assay.explainers.relevance import Lrp, propagated
from assay.explainers.relevance_rules import DEEPLIFT, secant, straight
from assay.models.config import Architecture
from assay.models.encoders import ENCODERS
from assay.models.erasure import baseline
from assay.models.network import Classifier
from assay.models.walk import Function
from assay.types import Batch
from benchmarks.__main__ import WORDS, machine, milliseconds, sentences, some

Array = np.ndarray
EPSILON = 0.0
EXPONENTIAL = Function(torch.exp, torch.exp)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def handed_down(x: Array, weight: Array, total: Array, relevance: Array) -> Array:
    """R_i = Σ_j x_i w_ij / (z_j + ε sign z_j) R_j; what the bias gets is left out."""
    messages = x[:, None] * weight / (total + EPSILON * np.where(total >= 0, 1, -1))[None, :] * relevance[None, :]
    return messages.sum(1)


def numbers(layer: torch.nn.Module) -> list[Array]:
    """Weights for inputs and for states, and both biases, of a recurrent layer."""
    return [
        getattr(layer, name).detach().numpy() for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    ]


def one_way(parameters: list[Array], x: Array) -> list[tuple[Array, ...]]:
    """Gates, candidate, its sum, memory and state at each step."""
    inputs, states, own, other = parameters
    state = memory = np.zeros(states.shape[1], x.dtype)
    steps = []
    for token in x:
        keep, forget, total, out = np.split(inputs @ token + states @ state + own + other, 4)
        keep, forget, out, new = sigmoid(keep), sigmoid(forget), sigmoid(out), np.tanh(total)
        memory = forget * memory + keep * new
        state = out * np.tanh(memory)
        steps.append((keep, forget, new, total, memory, state))
    return steps


def back(parameters: list[Array], x: Array, steps: list[tuple[Array, ...]], relevance: Array) -> Array:
    """The relevance of each token from that of each state [T, H]."""
    inputs, states = (np.split(part, 4)[2].T for part in parameters[:2])  # of the candidate: gates get nothing
    each = np.eye(states.shape[1], dtype=x.dtype)  # the memory is a sum, too
    tokens = np.zeros_like(x)
    to_state = to_memory = np.zeros(states.shape[1], x.dtype)
    for place in reversed(range(len(x))):
        keep, forget, new, total, memory, _ = steps[place]
        before = steps[place - 1] if place else (np.zeros_like(memory),) * 6
        to_memory = to_memory + to_state + relevance[place]
        to_new = handed_down(keep * new, each, memory, to_memory)
        to_memory = handed_down(forget * before[4], each, memory, to_memory)
        tokens[place] = handed_down(x[place], inputs, total, to_new)
        to_state = handed_down(before[5], states, total, to_new)
    return tokens.sum(-1)


def plain(model: Classifier, one: Batch) -> Array:
    """The relevance of each token of one sentence for its label against the other class."""
    x = model.embedding.weight.detach().numpy()[one.ids[0].numpy()]
    ways = [(numbers(model.encoder.ahead), x), (numbers(model.encoder.behind), x[::-1])]
    ahead, behind = (one_way(*way) for way in ways)
    states = np.concatenate(
        [np.stack([step[5] for step in ahead]), np.stack([step[5] for step in behind])[::-1]], axis=1
    )
    project, bias, score = (
        part.detach().numpy()
        for part in (model.alignment.project.weight, model.alignment.project.bias, model.alignment.score.weight)
    )
    scores = np.tanh(states @ project.T + bias) @ score[0]
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    context = weights @ states
    decoder, offset = model.decoder.weight.detach().numpy(), model.decoder.bias.detach().numpy()
    logits = decoder @ context + offset
    sign = np.where(np.arange(2) == one.labels[0].item(), 1, -1)
    to_states = weights[:, None] * states / context * handed_down(context, decoder.T, logits, sign * logits)
    one_half, other_half = np.split(to_states, 2, axis=1)
    return back(*ways[0], ahead, one_half) + back(*ways[1], behind, other_half[::-1])[::-1]


def compared(size: tuple[int, int], dtype: torch.dtype) -> str:
    """One row of the table: milliseconds for one sentence, their ratio, and the largest relative difference."""
    torch.manual_seed(0)
    model = Classifier(Architecture(embedding=size[0], hidden=size[1]), WORDS, 2).to(dtype).eval()
    explainer, batches = Lrp(), sentences()
    few = some(batches)
    rounds = []
    for _ in range(5):  # turn by turn, so that a busy machine slows both
        loop = milliseconds(lambda one: plain(model, one), few)
        rounds.append((milliseconds(lambda batch: explainer(model, batch, batch.labels), batches), loop))
    ours, loop = np.median(rounds, axis=0)
    apart = max(difference(model, one, explainer) for one in few)
    name = str(dtype).removeprefix("torch.")
    times = f"{ours:.3f} | {loop:.2f} | {np.median([b / a for a, b in rounds]):.0f}×"
    return f"| {size[0]}, {size[1]} | {name} | {times} | {apart:.0e} |"


def difference(model: Classifier, one: Batch, explainer: Lrp) -> float:
    ours = explainer.shares(model, one, one.labels).tokens[0].numpy()
    theirs = plain(model, one)
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def product_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """DeepLIFT's softmax as exp(s) · 1/Σ, the product by half sums: what ours is not."""
    shown = scores.detach().masked_fill(~mask, torch.finfo(scores.dtype).min)
    top = torch.maximum(*shown.amax(-1, keepdim=True).chunk(2)).repeat(2, *[1] * (scores.dim() - 1))
    raised = torch.where(mask, scores - top, 0.0)
    powers = straight(raised.exp(), raised * secant(EXPONENTIAL, raised.detach(), raised.detach().exp())) * mask
    total = powers.sum(-1, keepdim=True)
    (here, there), half = total.detach().chunk(2), len(scores) // 2
    inverse = straight(1 / total, total * (-1 / (here * there)).repeat(2, *[1] * (scores.dim() - 1)))
    middle = [
        (each[:half] + each[half:]).repeat(2, *[1] * (scores.dim() - 1)).detach() / 2 for each in (powers, inverse)
    ]
    return straight(powers * inverse, powers * middle[1] + middle[0] * inverse)


class Logits(torch.nn.Module):
    """A classifier as captum wants it: embeddings of some texts, several times, to logits."""

    def __init__(self, model: Classifier, batch: Batch) -> None:
        super().__init__()
        self.model, self.batch = model, batch

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x, self.batch[torch.arange(len(x)) % len(self.batch)]).logits


def left_over(encoder: str) -> str:
    """One row of the second table: what DeepLIFT leaves over, and its largest share, in parts of the difference."""
    torch.manual_seed(0)
    model = Classifier(Architecture(encoder=encoder, embedding=32, hidden=32), WORDS, 2).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # sharp attention, as of a trained model
    batch = sentences()[3][:8]
    x, blank = model.embed(batch).detach().requires_grad_(), baseline(model, batch, "zero")
    target = batch.labels
    ours, other = (
        propagated(model, batch, target, rules, "zero")
        for rules in (DEEPLIFT, replace(DEEPLIFT, weights=lambda _, *scores: product_softmax(*scores)))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # captum tells that it sets hooks
        try:
            parts = [captum.attr.DeepLift(Logits(model, batch)).attribute(x, blank, target=label) for label in (0, 1)]
            gap = (parts[0] - parts[1]).sum((1, 2)).detach() - ours.explained
            captums = f"{(gap.abs() / ours.explained.abs()).median():.0e}"
        except (AssertionError, RuntimeError) as error:
            captums = type(error).__name__
    largest = [(each.tokens.abs().amax(-1) / ours.explained.abs()).median() for each in (ours, other)]
    return f"| {encoder} | {captums} | {ours.gap.median():.0e} | {largest[0]:.1g} | {largest[1]:.1g} |"


def main() -> None:
    torch.set_num_threads(1)
    print(f"{time.strftime('%Y-%m-%d')}: {machine()}\n")
    print("| sizes | numbers | ours, ms | plain, ms | ratio | difference |\n|---|---|---|---|---|---|")
    for size in ((60, 60), (300, 128)):  # those of Arras et al. (2017), and of Jain and Wallace (2019)
        for dtype in (torch.float32, torch.float64):
            print(compared(size, dtype), flush=True)
    print("\n| encoder | captum's gap | our gap | largest share | by products |\n|---|---|---|---|---|")
    for encoder in ENCODERS:
        print(left_over(encoder), flush=True)


if __name__ == "__main__":
    main()

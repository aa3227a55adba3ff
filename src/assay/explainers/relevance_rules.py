"""Rules of relevance propagation: what stands in place of each operation's derivative; values stay the model's own.

Relevance is then gradient × input, whatever the rules. One record of functions is one column of the literature's
table: GRADIENT (nothing changed), `epsilon` (layer-wise relevance propagation), `attention_aware` (AttnLRP), DEEPLIFT.
What is linear, and has no sum of several inputs, needs no rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from assay.models.projections import Family, Projection, family, softmax
from assay.models.walk import GRADIENT, SIGMOID, Function, Rules

Numbers = Float[Tensor, "*N"]
Normed = Float[Tensor, "*N M"]
Sides = Float[Tensor, "R ..."]
Mask = Bool[Tensor, "R *N T"]
Scores = Float[Tensor, "R *N T"]


def straight(value: Numbers, stand_in: Numbers) -> Numbers:
    """The value, with the derivative of the stand-in (straight-through)."""
    return value.detach() + (stand_in - stand_in.detach())


def epsilon(stabiliser: float) -> Rules:
    """Layer-wise relevance propagation (Bach et al., 2015; gates: Arras et al., 2017; attention: Ali et al., 2022).

    A sum hands its relevance down in proportion to its terms, the bias being one of them; gates, attention weights and
    a layer norm's deviation are held and get nothing; an activation passes on what it got.
    """

    def total(z):  # type: ignore[no-untyped-def]
        # R_i = z_i / (z + ε sign z) R says that the multiplier R/z shrinks by |z| / (|z| + ε).
        return 1.0 if stabiliser == 0 else z.abs() / (z.abs() + stabiliser)

    return replace(
        GRADIENT, total=total, unary=ratio, gate=lambda x, value: 0.0, standard=_held_deviation, weighs=False
    )


def attention_aware(stabiliser: float) -> Rules:
    """AttnLRP (Achtibat et al., 2024): as `epsilon`, but attention weights are explained too.

    The softmax is expanded at its argument, which makes its multiplier the derivative, and so is whatever stands in its
    position; a matrix product of two things that depend on the input gives half to each.
    """
    # differs from Achtibat et al. (2024): they have no rule for recurrent gates; these stay held.
    return replace(epsilon(stabiliser), bilinear=_halves, weighs=True)


def ratio(function: Function, x: Numbers, value: Numbers) -> Numbers:
    """The multiplier φ(x)/x: the activation passes on its relevance."""
    return (value / x).nan_to_num_(nan=function.derivative(x.new_zeros(())).item())


def _held_deviation(x: Normed, floor: float) -> Normed:
    centred = x - x.mean(-1, keepdim=True)
    return centred * (centred.detach().square().mean(-1, keepdim=True) + floor).rsqrt()


def _halves(left: Float[Tensor, "*N S K"], right: Float[Tensor, "*N K T"]) -> Float[Tensor, "*N S T"]:
    return (left @ right.detach() + left.detach() @ right) / 2


# DeepLIFT: differences from a baseline in place of derivatives, without a remainder at any step
#
# The rows of a batch are texts and then their baselines, in the same order, or each that several texts share once:
# every rule looks at a text's row and at its baseline's. Only texts are explained, so that what the rules say of the
# rows of baselines is never used.


Pairs = Float[Tensor, "R *N"]
OWN: ContextVar[Int[Tensor, " B"] | None] = ContextVar("own", default=None)
"""Which of the rows behind the texts is the baseline of each; None where there are as many, in the same order."""


@contextmanager
def sharing(own: Int[Tensor, " B"] | None) -> Iterator[None]:
    """Context manager: these are the baselines of the texts."""
    token = OWN.set(own)
    try:
        yield
    finally:
        OWN.reset(token)


def halves(x: Shaped[Tensor, "R ..."]) -> tuple[Shaped[Tensor, "B ..."], Shaped[Tensor, "B ..."]]:
    """The rows of texts, and for each that of its baseline."""
    own = OWN.get()
    if own is None:
        here, there = x.chunk(2)
        return here, there
    return x[: len(own)], x[len(own) :][own]


def secant(function: Function, x: Pairs, value: Pairs) -> Pairs:
    """(φ(x) - φ(y)) / (x - y) for a text's x and its baseline's y (Shrikumar et al., 2017: the rescale rule)."""
    here, there = halves(x)
    step = here - there
    # Where rounding would spoil the quotient, the derivative half way is nearer: it is off by step² / 24.
    least = (24 * torch.finfo(x.dtype).eps) ** (1 / 3) if function.smooth else 0.0
    near = step.abs() <= least
    reached, began = halves(value)
    quotient = (reached - began) / torch.where(near, 1.0, step)
    return _both(x, torch.where(near, function.derivative((here + there) / 2), quotient))


def half_sums(left: Pairs, right: Pairs) -> tuple[Pairs, Pairs]:
    """Δ(ab) = Δa (b + b')/2 + Δb (a + a')/2."""
    return _middle(right), _middle(left)


def half_sums_of_matrices(
    left: Float[Tensor, "R *N S K"], right: Float[Tensor, "R *N K T"]
) -> Float[Tensor, "R *N S T"]:
    return straight(left @ right, left @ _middle(right.detach()) + _middle(left.detach()) @ right)


def of_weights(project: Projection, scores: Scores, mask: Mask) -> Scores:
    """Attention weights, by the rule of their projection."""
    known = family(project)
    assert known is not None
    return log_means(scores, mask) if known.alpha == 1 else thresholds(known, project, scores, mask)


def thresholds(known: Family, project: Projection, scores: Scores, mask: Mask) -> Scores:
    """Weights φ(z - t) with a threshold t that makes their sum one, by the secant k of φ at each.

    Δp_i = k_i (Δz_i - Δt), and as the sum stays one, Δt = Σ k_j Δz_j / Σ k_j.
    """
    with torch.no_grad():
        weights = project(scores, mask)
        height = known.heights(scores, weights, mask)
        curve = Function(known.value, known.derivative, smooth=known.alpha <= 1.5)  # steep at 0 beyond
        secants = secant(curve, height, known.value(height)) * mask
    total = secants.sum(-1, keepdim=True)
    share = secants / torch.where(total > 0, total, 1.0)
    return straight(weights, known.scale * secants * (scores - (share * scores).sum(-1, keepdim=True)))


def log_means(scores: Scores, mask: Mask) -> Scores:
    """The softmax as exp(s - log Σ exp(s)), each step by its secant.

    With L(a, b) = (a - b) / (log a - log b), the logarithmic mean of a text's number and its baseline's,
    Δp_i = L(p_i, p'_i) (Δs_i - Σ_j w_j Δs_j), where w_j = L(exp s_j, exp s'_j) / L(Σ exp s, Σ exp s').
    """
    # differs from the product exp(s) · 1/Σ, whose half sums hold terms as large as the ratio of the two sums: they
    # cancel between tokens only. Here every factor stays between a text's number and its baseline's.
    shown = scores.detach().masked_fill(~mask, torch.finfo(scores.dtype).min)
    sums = shown.logsumexp(-1, keepdim=True)
    inside = halves(mask)[0]
    share = _both(shown, _log_means(shown, sums) * inside)
    secants = _both(shown, _log_means(shown - sums, torch.zeros_like(sums)) * inside)
    return straight(softmax(shown, mask), secants * (scores - (share * scores).sum(-1, keepdim=True)))


def _log_means(logarithms: Tensor, scale: Tensor) -> Tensor:
    """L(exp a, exp b) / L(exp c, exp d) for the two halves a, b and c, d of the logarithms and of their scale."""
    (one, other), (over, under) = halves(logarithms), halves(scale)
    size = (torch.maximum(one, other) - torch.maximum(over, under)).exp()
    return size * _damped(one - other) / _damped(over - under)


def _damped(step: Tensor) -> Tensor:
    """(1 - exp(-|d|)) / |d|, and 1 at 0."""
    size = step.abs()
    return torch.where(size == 0, 1.0, -torch.expm1(-size) / torch.where(size == 0, 1.0, size))


def standard_secants(x: Float[Tensor, "R *N M"], floor: float) -> Float[Tensor, "R *N M"]:
    """A layer norm as centre, square, mean, inverse root and product."""
    centred = x - x.mean(-1, keepdim=True)
    middle = _middle(centred.detach())
    square = straight(centred.square(), 2 * middle * centred)
    variance = square.mean(-1, keepdim=True) + floor
    scale = variance.detach().rsqrt()
    one, other = halves(scale)
    of_root = _both(scale, -(one * other).square() / (one + other))  # the inverse root's secant, without a difference
    return straight(centred * scale, centred * _middle(scale) + middle * (variance * of_root))


def _both(rows: Sides, found: Float[Tensor, "B ..."]) -> Sides:
    """Multipliers of texts, repeated for baselines, whose relevance nobody reads."""
    return torch.cat([found, found[: len(rows) - len(found)]])


def _middle(x: Pairs) -> Pairs:
    """The mean of a text's values and its baseline's."""
    here, there = halves(x)
    return _both(x, (here + there) / 2)


DEEPLIFT = replace(
    GRADIENT,
    unary=secant,
    gate=lambda x, value: secant(SIGMOID, x, value),
    product=half_sums,
    bilinear=half_sums_of_matrices,
    weights=of_weights,
    standard=standard_secants,
)

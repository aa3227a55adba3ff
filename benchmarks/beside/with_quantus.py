"""Quantus: words masked one after the other, and gradients of networks that are drawn anew layer by layer.

To Quantus a text is an image of one row. Pixel flipping takes the numbers of words, so that a word is one feature;
randomisation takes embeddings.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import quantus
import torch
from torch import Tensor, nn

from benchmarks.beside.plainly import Plain, counted, labels
from benchmarks.beside.turns import Scores, Text, Way

__all__ = ["WAYS", "counted"]

os.environ["HF_DATASETS_OFFLINE"] = "1"


class Numbers(nn.Module):
    """Probabilities of an image of one row, whose pixels are numbers of words."""

    def __init__(self, plain: Plain) -> None:
        super().__init__()
        self.plain = plain

    def forward(self, pixels: Tensor) -> Tensor:
        return self.plain.probabilities(self.plain.table(pixels[:, 0].long()))


class Embedded(nn.Module):
    """Probabilities of an image with a channel for each coordinate of an embedding."""

    def __init__(self, plain: Plain) -> None:
        super().__init__()
        self.plain, self.inner = [plain], plain.model

    def forward(self, x: Tensor) -> Tensor:
        plain = self.plain[0]
        kept, plain.model = plain.model, self.inner
        found = plain.probabilities(x.transpose(1, 2))
        plain.model = kept
        return found


def flipping(folder: Path) -> Way:
    plain = Plain(folder)
    metric = quantus.PixelFlipping(
        features_in_step=1,
        perturb_baseline=float(plain.tokenizer.mask_token_id),
        normalise=False,
        disable_warnings=True,
    )

    def run(texts: Sequence[Text]) -> Scores:
        found = metric(
            model=Numbers(plain).eval(),
            x_batch=plain.ids(texts)[:, None, 1:-1].float().numpy(),
            y_batch=labels(texts).numpy(),
            a_batch=np.array([text.given[0] for text in texts])[:, None],
            channel_first=True,
            softmax=False,
            device="cpu",
        )
        return [list(map(float, curve)) for curve in found]

    return run


def gradients(model: nn.Module, inputs: np.ndarray, targets: np.ndarray, **options: object) -> np.ndarray:
    """The norm of the gradient at each word."""
    x = torch.as_tensor(inputs, dtype=torch.float32).requires_grad_()
    chosen = model(x).gather(1, torch.as_tensor(targets)[:, None].long())
    (slope,) = torch.autograd.grad(chosen.sum(), x)
    return slope.norm(dim=1, keepdim=True).numpy()


def randomisation(folder: Path) -> Way:
    plain = Plain(folder)
    metric = quantus.MPRT(normalise=False, disable_warnings=True)

    def run(texts: Sequence[Text]) -> Scores:
        found = metric(
            model=Embedded(plain).eval(),
            x_batch=plain.words(texts).transpose(1, 2).numpy(),
            y_batch=labels(texts).numpy(),
            channel_first=True,
            explain_func=gradients,
            device="cpu",
        )
        steps = [values for name, values in found.items() if name != "original"]
        return np.stack(steps, 1).tolist()

    return run


WAYS = {"flipping": flipping, "randomisation": randomisation}

"""Rankings of words side by side, those of explainers and random ones, and the sets of words that they name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.audits.cases import Case, numpy
from assay.explainers.baselines import Random
from assay.metrics import erasure


def shuffled(case: Case, first: int, count: int) -> list[Float[Tensor, "B T"]]:
    """The scores of `count` random rankings, with seeds from the `first` on."""
    return [Random(seed)(case.model, case.batch, case.predicted) for seed in range(first, first + count)]


def ranked(
    scores: Sequence[Float[Tensor, "B T"]], mask: Bool[np.ndarray, "B T"]
) -> tuple[Int[np.ndarray, "B R T"], Bool[np.ndarray, "B R"]]:
    """The rank of each word under each of these scores, and where a score is missing."""
    values = [numpy(each) for each in scores]
    missing = [(np.isnan(each) & mask).any(-1) for each in values]
    return np.stack([erasure.ranks(each, mask) for each in values], 1), np.stack(missing, 1)


def distinct(
    kept: Bool[np.ndarray, "B N T"], mask: Bool[np.ndarray, "B T"]
) -> tuple[Int[Tensor, " V"], Bool[Tensor, "V T"], Int[np.ndarray, " M"]]:
    """The different sets of words of each text, each once: of which text, which words; and which one each set is."""
    example = np.arange(len(kept)).repeat(kept.shape[1])
    versions = (kept & mask[:, None]).reshape(len(example), -1)
    bits = np.concatenate([example[:, None].view(np.uint8), np.packbits(versions, axis=-1)], 1)
    keys = np.ascontiguousarray(bits).view(f"V{bits.shape[1]}")[:, 0]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return torch.from_numpy(example[first]), torch.from_numpy(versions[first]), place

"""Normalised entropy of a distribution over tokens."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import entr


def normalised_entropy(values: Float[np.ndarray, "*B T"], mask: Bool[np.ndarray, "*#B T"]) -> Float[np.ndarray, "*B"]:
    """Shannon entropy of the normalised scores, divided by log(number of real tokens): from 0 to 1.

    Values are from 0 and need not add up to 1. It is nan where there is one token or none, which leaves no choice,
    where all values are 0, and where a real token has none; Meister et al. (2021), section 4.
    """
    real = np.where(mask, values, 0.0).astype(np.float64)
    peak, count = real.max(-1, keepdims=True, initial=0.0), np.broadcast_to(mask, real.shape).sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = real / peak  # so that the smallest numbers do not vanish in the sum
        shares = scaled / scaled.sum(-1, keepdims=True)
        found = entr(shares).sum(-1) / np.log(count)
    return np.where((count > 1) & np.isfinite(found), np.minimum(found, 1.0), np.nan)

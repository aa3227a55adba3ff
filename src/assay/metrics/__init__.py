"""Metrics of explanations: functions of numpy arrays, without a model; B texts of T tokens, n values in k columns."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int, Num

TokenScores = Float[np.ndarray, "B T"]
TokenMask = Bool[np.ndarray, "B T"]
TokenRanks = Int[np.ndarray, "B T"]
TextValues = Float[np.ndarray, " B"]
TextCounts = Int[np.ndarray, " B"]

Sample = Float[np.ndarray, " n"]
Columns = Float[np.ndarray, "n k"]
PerColumn = Float[np.ndarray, " k"]
ColumnCounts = Int[np.ndarray, " k"]
ColumnNumbers = Num[np.ndarray, " k"]

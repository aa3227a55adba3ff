"""The last linear layer: its inputs and its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.influence.gradients import Gradients, Reading
from assay.influence.setting import Setting


@dataclass(frozen=True)
class Head:
    """Parameter names of the linear layer that makes the logits."""

    weight: str
    bias: str | None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.weight,) if self.bias is None else (self.weight, self.bias)


def head(setting: Setting) -> Head:
    """The last layer, found by name and checked on some training rows."""
    found = _found(setting)
    if found is None:
        raise AssayError(f"This method cannot be used: {headless(setting)}.")
    return found


def headless(setting: Setting) -> str | None:
    """Why there is no last layer, as the end of a sentence, or None."""
    return None if _found(setting) is not None else "the logits of this model are no linear map of what comes before"


def _found(setting: Setting) -> Head | None:
    parameters, every = setting.parameters, dict(setting.network.named_parameters())
    _, batch = next(iter(setting.batches(setting.train[:3])))
    reading = setting.reader.read(batch)
    for weight, values in reversed(parameters.items()):
        if values.dim() != 2 or len(values) != setting.network.classes:
            continue
        bias = weight.removesuffix("weight") + "bias"
        logits = _read(reading, weight) @ values.detach().T + (every[bias].detach() if bias in every else 0)
        tolerance = 1e-4 if logits.dtype.itemsize >= 4 else 0.1
        if torch.allclose(logits, reading.logits.detach(), rtol=tolerance, atol=tolerance):
            return Head(weight, bias if bias in parameters else None)
    return None


def _read(reading: Reading, weight: str) -> Float[Tensor, "B F"]:
    """The inputs of the layer, as the derivative of the first logit by the first row of the weights."""
    logit_gradients = torch.zeros_like(reading.logits)
    logit_gradients[:, 0] = 1
    if weight in reading.unbatched:
        found = reading.gradients(logit_gradients)
    else:  # the backward pass ends at the layer
        parameter = dict(reading.reader.network.named_parameters())[weight]
        with reading.tape.recording() as records:
            torch.autograd.grad(
                (reading.logits * logit_gradients).sum(), parameter, retain_graph=True, allow_unused=True
            )
        if weight not in records:
            return logit_gradients.new_zeros(len(logit_gradients), parameter.shape[1])
        found = Gradients(records, reading.reader.shapes, len(logit_gradients))
    return found.dense(weight).view(len(logit_gradients), logit_gradients.shape[1], -1)[:, 0]


def read_by_head(
    setting: Setting, rows: Sequence[Tokenised], weight: str
) -> tuple[Float[np.ndarray, "N F"], Float[np.ndarray, "N C"]]:
    """The inputs of the last layer for each row, and the logits."""
    features = np.zeros((len(rows), setting.parameters[weight].shape[1]))
    logits = np.zeros((len(rows), setting.network.classes))
    for indices, batch in setting.batches(rows):
        reading = setting.reader.read(batch)
        features[indices] = _read(reading, weight).double().cpu().numpy()
        logits[indices] = reading.logits.detach().double().cpu().numpy()
    return features, logits

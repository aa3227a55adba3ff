"""Numerical precision: networks that can are evaluated in float64, where ranks of scores are compared."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import nn

from assay.models.huggingface.body import Body
from assay.models.textmodel import TextModel
from assay.types import Model

WITHOUT_DOUBLE = ("mps",)


def doubled(network: TextModel) -> TextModel:
    """A copy of the network in float64; a pretrained transformer, or a network in half precision, unchanged.

    In float32 an effect below the rounding of the answer has any rank (docs/precision.md).
    """
    pretrained = any(isinstance(part, Body) for part in network.modules())
    single = all(weight.dtype == torch.float32 for weight in network.parameters())
    if pretrained or not single or network.device.type in WITHOUT_DOUBLE:
        return network
    return deepcopy(network).double()


def in_double(model: Model) -> bool:
    """Whether all weights are in float64; a model without weights depends on its own code."""
    weights = model.parameters() if isinstance(model, nn.Module) else ()
    return all(weight.dtype == torch.float64 for weight in weights)

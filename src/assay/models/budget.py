"""The memory budget: how much of each thing is read or held at once on a device."""

from __future__ import annotations

import torch

ROOM = {  # on a processor, whose caches are small, and on a GPU
    # tokens or subwords
    "training": (8_192, 65_536),  # of one training step
    "prediction": (16_384, 32_768),  # of a forward pass without gradients
    "likelihood": (16_384, 131_072),  # of the sources of an encoder–decoder without gradients
    "gradients": (2_048, 65_536),  # of a forward and backward pass
    "head gradients": (2_048, 32_768),  # of a backward pass to every attention weight
    "activations": (4_096, 32_768),  # of a pass whose activations take several times its hidden states
    "versions": (4_096, 131_072),  # of versions of texts: like lengths pad less
    "versions of stacks": (512, 131_072),  # in a transformer, which takes no steps that wide batches would share
    "decomposition": (16_384, 262_144),  # of contextual decomposition, those of parts and versions among them
    "path": (0, 16_384),  # of integrated gradients, read in the time of few
    "attention search": (1 << 13, 1 << 20),  # of all passes while a person waits: some seconds of a small transformer
    # numbers
    "lanes": (1 << 20, 1 << 27),  # of Jacobian products in a recurrence: 4 MiB stay in a cache
    "deleted pairs": (1 << 16, 1 << 22),  # of a removed and a remaining token
    "subsequence pairs": (1 << 20, 1 << 26),  # of words that a string kernel compares
    "attention maps": (1 << 23, 1 << 28),  # attention weights of all heads
    "edited stack": (1 << 19, 1 << 23),  # attention weights of each head that an adversary moves
    "query gradients": (1 << 28, 1 << 33),  # of influence queries
}
"""How much at once, by what it is for. Sizes change speed and memory, and results by rounding alone."""


def room(device: torch.device | str, what: str, each: int = 1) -> int:
    """How many items of `each` units fit into one batch on a device: at least one.

    An accelerator that is no CUDA device gets a quarter of a GPU's room, but no less than a processor.
    """
    processor, gpu = ROOM[what]
    kind = torch.device(device).type
    units = processor if kind == "cpu" else gpu if kind == "cuda" else max(processor, gpu // 4)
    return max(1, units // max(1, each))

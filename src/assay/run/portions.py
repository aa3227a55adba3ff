"""How much is examined at once and kept as one part: what memory must hold, and what an interruption can lose."""

from __future__ import annotations

from assay.data.batches import Tokenised
from assay.models.hf_body import Body
from assay.models.store import Opened

TOKENS = 4096  # of the networks that are trained here
SLOW = 512  # places of a transformer on a CPU: an interruption then loses minutes at most
MOST = 32_768  # places of a transformer on a GPU: more are no faster


def places(row: Tokenised) -> int:
    """How many places a text takes in what a model reads: its tokens, or all subwords of it and of its question."""
    if row.subwords is None:
        return len(row.ids)
    return int((row.subwords >= 0).sum()) + (0 if row.query is None else len(row.query))


def places_at_once(model: Opened, longest: int) -> int:
    """How many places are examined at once where the longest text takes so many.

    A transformer is explained with the states of every layer and the attention of every head at hand, so each place
    costs memory with the length of its text; a GPU takes as many as it has memory for. For the same texts and model on
    the same device it is the same number, so that an interrupted audit finds its parts again.
    """
    network = model.network
    if not isinstance(network, Body):
        return TOKENS
    if network.device.type != "cuda":
        return SLOW
    return max(SLOW, min(MOST, network.room(longest)))

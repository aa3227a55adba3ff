"""Regularisers of the training loss: on hidden states (tying, conicity, diversity, masked words) and on attention.

Each is one number per text, the mean over its words, added to the text's loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from assay.data.text import SPECIAL, UNKNOWN
from assay.models.network import Network
from assay.models.options import Training
from assay.models.textmodel import TextModel
from assay.types import Batch, over_tokens

MASKED = 0.15  # of the words, as Devlin et al. (2019)
Numbers = Float[Tensor, " B"]


@dataclass(frozen=True)
class Read:
    """The forward pass of a batch: embeddings, hidden states and attention weights."""

    network: Network
    x: Float[Tensor, "B T D"]
    batch: Batch
    states: Float[Tensor, "B N M"]
    weights: Float[Tensor, "B N"]

    @cached_property
    def encodings(self) -> Float[Tensor, "B T H"]:
        """The encoder's hidden state for each word."""
        return self.network.encodings(self.x, self.batch, self.states)

    def reread(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T H"]:
        """The encoder's hidden states for other embeddings of the words."""
        return self.network.encodings(x, self.batch, self.network.states(x, self.batch))


def tying(read: Read) -> Numbers:
    """‖h_t − e_t‖₂ (Tutek and Šnajder, 2020), with e_t detached: hidden states are pulled towards embeddings."""
    # differs from Tutek and Šnajder (2020): if embeddings learnt from it as targets they would all become one, and if
    # only as what is read they would run away from the states; both leave words that the states do not tell
    x = read.x.detach()
    encodings = read.reread(x) if read.x.requires_grad else read.encodings
    return _mean((encodings - x).norm(dim=-1), read.batch.mask)


def conicity(read: Read) -> Numbers:
    """cos(h_t, mean of all h): how narrow the cone of the states is (Mohankumar et al., 2020, section 3).

    With it as an objective they train what they call the diversity-driven LSTM.
    """
    encodings, mask = read.encodings, read.batch.mask
    centre = (encodings * mask[..., None]).sum(1, keepdim=True) / mask.sum(-1).clamp(min=1)[:, None, None]
    return _mean(F.cosine_similarity(encodings, centre, dim=-1), mask)


def diversity(read: Read) -> Numbers:
    """The mean of cos(h_s, h_t)² over pairs of words: how far the states are from being orthogonal.

    It asks softly for what the orthogonal LSTM of Mohankumar et al. (2020) is built to have.
    """
    mask = read.batch.mask
    directions = F.normalize(read.encodings, dim=-1) * mask[..., None]
    long = directions.shape[1] > directions.shape[2]
    products = directions.mT @ directions if long else directions @ directions.mT  # both have the same sum of squares
    alike = products.square().sum((1, 2)) - directions.square().sum(-1).square().sum(-1)
    count = mask.sum(-1)
    return alike / (count * (count - 1)).clamp(min=1)


def masked_words(read: Read, head: nn.Module) -> Numbers:
    """−log p(x_t | h_t) for masked words, a masked language model's loss; 0 where no word is masked.

    The output shares the embeddings. Nothing but words is masked or guessed: the markers, the padding and the unknown
    word, which stands for the mask, keep their embeddings.
    """
    network, batch, special = read.network, read.batch, len(SPECIAL)
    drawn = torch.rand(batch.ids.shape, device=batch.ids.device) < MASKED
    hidden = drawn & batch.mask & (batch.ids >= special)
    blank = network.embedding.weight[SPECIAL.index(UNKNOWN)]
    x = torch.where(hidden[..., None], blank, read.x)
    guessed = head(read.reread(x)[hidden]) @ network.embedding.weight[special:].T
    losses = F.cross_entropy(guessed, batch.ids[hidden] - special, reduction="none")
    return _mean(torch.zeros_like(read.x[..., 0]).masked_scatter(hidden, losses), hidden)


def avoidance(read: Read, avoided: tuple[int, ...]) -> Numbers:
    """−log(1 − the attention to the words of these ids) (Pruthi et al., 2020, section 3)."""
    within = read.network.within(read.x, read.batch)
    shown = over_tokens(read.network, read.weights, read.batch) * within
    others = ~torch.isin(read.batch.ids, torch.tensor(avoided).to(read.batch.ids))
    left = (shown * others).sum(-1)  # 1 − mass, without loss of digits where little is left
    return -left.clamp(min=torch.finfo(left.dtype).eps ** 2, max=1).log()  # nothing may be left of a short text


REGULARISERS: dict[str, Callable[[Read], Numbers]] = {"tying": tying, "conicity": conicity, "diversity": diversity}
"""By the name of the option that says how much each counts."""


def regularised(read: Read, options: Training, heads: nn.ModuleDict) -> Numbers | float:
    """The sum of all regularisers that the options name, each times its strength."""
    asked = {name: getattr(options, name) for name in REGULARISERS}
    total: Numbers | float = sum(
        (strength * REGULARISERS[name](read) for name, strength in asked.items() if strength), 0.0
    )
    if options.mlm:
        total = total + options.mlm * masked_words(read, heads["mlm"])
    if options.penalty and (own := read.network.penalty(read.states, read.batch)) is not None:
        total = total + options.penalty * own
    return total


def heads(network: TextModel, options: Training) -> nn.ModuleDict:
    """Auxiliary heads, trained with the network and then dropped: for masked words, a map from states to embeddings."""
    if not options.mlm:
        return nn.ModuleDict()
    assert isinstance(network, Network)
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        head = nn.Linear(network.words_encoder.size, network.architecture.embedding)
    return nn.ModuleDict({"mlm": head}).to(network.decoder.weight)


def _mean(values: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Numbers:
    return (values * mask).sum(-1) / mask.sum(-1).clamp(min=1)

"""Builds the networks (players) of a scheme: small ones, or from pretrained encoders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import nn

from assay.data.text import SPECIAL, Tokeniser
from assay.errors import AssayError
from assay.models.hf_finetuning import FineTuning, begun
from assay.models.hf_loading import Opening
from assay.models.hf_models import Attentive
from assay.models.hf_subwords import SubwordTokeniser
from assay.models.network import Classifier
from assay.models.recipes import Recipe, drawn, initialise
from assay.rationales.concepts.inference import Concepts
from assay.rationales.players import Head, Players, Reader
from assay.rationales.rules import Rules
from assay.rationales.schemes import Scheme

SEED_STEP = 1000  # between the seeds of two readers


class LearntBlank(nn.Module):
    """A learnt embedding in place of unselected words, the same at all positions."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.zeros(size))


class LagrangeMultiplier(nn.Module):
    """Lagrange multiplier α of a constraint, from 0 to `most`."""

    def __init__(self, size: int, most: float = 200.0) -> None:
        super().__init__()
        self.most = most
        self.value = nn.Parameter(torch.ones(()))


class MaskEmbedding(nn.Embedding):
    """An embedding added to each word that says which mask it was read through."""

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=0.1)


EXTRAS = {"blank": LearntBlank, "multiplier": LagrangeMultiplier}


def build_players(scheme: Scheme, recipe: Recipe, tokeniser: Tokeniser, classes: int) -> Players:
    """Players with random weights, equal for equal seeds; all but the predictor have a table of markers only."""
    readers: dict[str, Reader] = {}
    for index, name in enumerate(scheme.readers):
        seed = recipe.training.seed + SEED_STEP * index
        network = (
            initialise(recipe, tokeniser, classes)
            if name == "predictor"
            else drawn(recipe.architecture, len(SPECIAL), classes, seed)
        )
        if not isinstance(network, Classifier):
            raise AssayError(
                f"Players are networks with one attention over the words of one text; the shape "
                f"{recipe.architecture.shape} is none, so use flat."
            )
        readers[name] = network
    return assemble_players(scheme.rules, readers, scheme.extras, classes, recipe.training.seed)


def build_pretrained_players(
    scheme: Scheme, recipe: FineTuning, classes: Sequence[str], options: Opening
) -> tuple[Players, SubwordTokeniser]:
    """Players that all start from one pretrained encoder, and its tokeniser.

    All read the embeddings of the predictor, so the others keep theirs, which they need for markers, as they are.
    """
    readers: dict[str, Reader] = {}
    for index, name in enumerate(scheme.readers):
        training = replace(recipe.training, seed=recipe.training.seed + SEED_STEP * index)
        network, tokeniser = begun(replace(recipe, head="attention", training=training), classes, options)
        assert isinstance(network, Attentive)
        if name != "predictor":
            network.embedding.requires_grad_(False)
        readers[name] = network
    return assemble_players(scheme.rules, readers, scheme.extras, len(classes), recipe.training.seed), tokeniser


def assemble_players(
    rules: Rules, readers: Mapping[str, Reader], extras: tuple[str, ...], classes: int, seed: int = 0
) -> Players:
    """The readers, a selector head, and the extra modules."""
    predictor = readers["predictor"]
    with torch.random.fork_rng():
        torch.manual_seed(seed + 1)
        conditions = classes if rules.condition != "none" else 0
        head = Head(predictor.decoder.in_features, rules.masks, rules.relaxation.parameters, conditions)
        width = predictor.blank("zero").shape[0]
        more: dict[str, nn.Module] = {name: EXTRAS[name](width) for name in extras if name in EXTRAS}
        if "concepts" in extras:
            more["concepts"] = Concepts(
                predictor.decoder.in_features, rules.masks, classes, weighted=rules.answers == "presence"
            )
        if "paths" in extras:
            more["paths"] = MaskEmbedding(rules.masks, width)
    return Players(readers, head, more).to(predictor.device)

"""DiffMask (De Cao et al., 2020): gates that close on all words that a trained model does not need."""

from __future__ import annotations

from collections.abc import Sequence

from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.models.config import Training
from assay.models.hf_models import Attentive
from assay.models.network import WordNetwork
from assay.models.store import Checkpoint
from assay.models.textmodel import TextModel
from assay.rationales.decoding import Decoding
from assay.rationales.epoch_selection import Sparsest
from assay.rationales.games import Move, Stage
from assay.rationales.learning import GameState, learn
from assay.rationales.player_building import assemble_players
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.relaxations.hardconcrete import HardConcrete
from assay.rationales.rules import Rules
from assay.rationales.schemes import Options, Scheme
from assay.rationales.stories import GAME
from assay.rationales.terms.answers import AnswerCrossEntropy
from assay.rationales.terms.constraints import Constraint
from assay.rationales.terms.divergences import FullTextDivergence
from assay.rationales.terms.sizes import Size
from assay.stories import with_story

LIMIT = 0.1  # of KL(P(all) ‖ P(selected)), on average


def gates(options: Options, limit: float = LIMIT) -> Scheme:
    """Trains the gates alone, for a trained model: the fewest words that keep its prediction within the limit.

    How many these are is for the limit to say, so the rate that was asked for is not used.
    """
    # differs from the code of De Cao et al. (2020): the expected share of open gates is lowered, not the sum of its
    # logarithms, and gates read the states of the last layer alone
    terms = ((1.0, Size(kind="plain", of="chance")), (1.0, Constraint(FullTextDivergence(), limit)))
    rules = Rules(options.units, HardConcrete(0.2, -0.2, 1.0), Decoding("threshold"), reads="all")
    stage = Stage((Move(("selector", "blank", "multiplier"), terms),), pace={"multiplier": 100.0})
    return Scheme(rules, (stage,), ("predictor",), ("blank", "multiplier"), Sparsest(limit))


@with_story(
    "DiffMask: gates that close on all words that a trained model does not need", "De Cao et al. (2020)", like=GAME
)
def diffmask(options: Options, limit: float = LIMIT) -> Scheme:
    """Trains a predictor on all words, then gates that explain it while it stays frozen."""
    scheme = gates(options, limit)
    first = Stage((Move(("predictor",), ((1.0, AnswerCrossEntropy(view="all")),)),), share=0.4)
    last = scheme.stages[0]
    return Scheme(scheme.rules, (first, last), scheme.readers, scheme.extras, scheme.epoch_score)


def explained(
    model: TextModel,
    scheme: Scheme,
    train: Sequence[Tokenised],
    dev: Sequence[Tokenised],
    options: Training,
    checkpoint: Checkpoint | None = None,
) -> tuple[Rationaliser, GameState]:
    """A trained model with gates fitted to it; its weights and predictions stay its own."""
    if not isinstance(model, WordNetwork | Attentive):
        raise AssayError("Gates need a model that pools the states of words; train one of that shape.")
    players = assemble_players(scheme.rules, {"predictor": model}, scheme.extras, model.classes, options.seed)
    return learn(players, scheme, train, dev, options, checkpoint)

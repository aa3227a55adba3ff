"""Recipes: published methods that train selections, each a few lines of data over one training loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.models.config import Training
from assay.models.hf_models import Attentive
from assay.models.network import WordNetwork
from assay.models.store import Checkpoint
from assay.models.textmodel import TextModel
from assay.rationales import losses
from assay.rationales.game import Move, Stage, Term, Terms
from assay.rationales.learning import CriticGap, GameState, LatestAccurate, Options, Scheme, Sparsest, learn
from assay.rationales.losses import AnswerCrossEntropy, Continuity, FullTextDivergence, Size
from assay.rationales.players import Rules, assemble_players
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.relaxations import (
    Bernoulli,
    CappedSimplex,
    Excerpt,
    GumbelStraightThrough,
    HardConcrete,
    HardKuma,
    RelaxedBernoulli,
    Saliency,
    StraightThrough,
    Window,
)
from assay.rationales.selection_stories import GAME
from assay.rationales.units import Decoding
from assay.stories import with_story

BOTH = ("selector", "predictor")
READERS = ("predictor", "selector")  # in the order of their seeds


def short(options: Options, kind: str = "text") -> Terms:
    """Penalties on the distance from the rate, in each text or in a batch, and on breaks, with the chosen weights."""
    size, continuity = options.weight("size", 5.0), options.weight("continuity", 0.5)
    return (size, Size(options.rate, kind)), (continuity, Continuity())


def answers(*players: str, reader: str = "predictor", view: str = "selected", stopped: bool = False) -> Move:
    """A move of players, by default the reader alone, on the cross-entropy of the reader on a view."""
    return Move(players or (reader,), ((1.0, AnswerCrossEntropy(reader, view, stopped=stopped)),))


def together(*more: tuple[float, Term], players: tuple[str, ...] = BOTH) -> tuple[Stage]:
    """One stage of one move: all players minimise the predictor's cross-entropy and the other terms."""
    return (Stage((Move(players, ((1.0, AnswerCrossEntropy()), *more)),)),)


# Selector and predictor trained together


@with_story("A selector and a predictor trained together, by REINFORCE", "Lei et al. (2016)", like=GAME)
def lei(options: Options) -> Scheme:
    """Both players minimise the cross-entropy, the size of the sampled masks and their breaks."""
    # differs from Lei et al. (2016): a running mean of costs is the baseline, and the size is drawn to a rate
    return Scheme(options.rules(Bernoulli()), together(*short(options)))


@with_story(
    "RNP: the model of Lei et al. as usually trained since 2020, with straight-through masks",
    "Lei et al. (2016)",
    like=GAME,
)
def rnp(options: Options) -> Scheme:
    """Both players minimise the cross-entropy, a batch's distance from the rate, and the breaks of sampled masks."""
    return Scheme(options.rules(GumbelStraightThrough()), together(*short(options, "batch")))


@with_story(
    "Information bottleneck: as little information about the text as the answer needs",
    "Paranjape et al. (2020)",
    like=GAME,
)
def bottleneck(options: Options) -> Scheme:
    """Both players minimise the cross-entropy and the KL divergence from the prior, weighted by `size`."""
    # differs from the code of Paranjape et al. (2020): the logits are not squeezed, so a probability may pass one half
    prior = options.weight("size", 1.0), losses.Prior(options.rate)
    breaks = options.weight("continuity", 0.0), Continuity()
    return Scheme(options.rules(RelaxedBernoulli()), together(prior, breaks))


@with_story("SPECTRA: the best mask within a budget, deterministic", "Guerreiro and Martins (2021)", like=GAME)
def spectra(options: Options) -> Scheme:
    """Both players minimise the cross-entropy alone; the mask itself keeps the budget."""
    return Scheme(options.rules(CappedSimplex(options.rate)), together())


@with_story("HardKuma: differentiable masks that are often exactly 0 or 1", "Bastings et al. (2019)", like=GAME)
def hardkuma(options: Options) -> Scheme:
    """Both players minimise the cross-entropy and the distance of the expected share of words from the rate."""
    # differs from Bastings et al. (2019): a penalty of fixed weight draws to the rate from either side, since with a
    # multiplier that must settle first, a short training ends with all words or with none
    size = options.weight("size", 2.0), Size(options.rate, "batch", of="chance")
    breaks = options.weight("continuity", 0.0), Continuity(of="chance")
    return Scheme(options.rules(HardKuma()), together(size, breaks))


# Remedies for degeneration

# differs from Liu et al.: the size of each text counts, not that of a batch, in which texts of one class could be told
# by nothing at all being selected
REMEDY = "Remedy for degeneration, in which a predictor adapts to arbitrary selections"


@with_story(REMEDY, "Liu et al. (2022)", like=GAME)
def fr(options: Options) -> Scheme:
    """FR (Liu et al., 2022): selector and predictor share one encoder."""
    return Scheme(options.rules(GumbelStraightThrough()), together(*short(options)), readers=("predictor",))


@with_story(REMEDY, "Liu et al. (2023)", like=GAME)
def dr(options: Options) -> Scheme:
    """DR (Liu et al., 2023): the predictor's learning rate falls with the share of words that it reads."""
    pace = dict.fromkeys(BOTH, 4.0)  # with the rate of others, a predictor so slow would hardly come to learn
    (stage,) = together(*short(options))
    return Scheme(options.rules(GumbelStraightThrough()), (Stage(stage.moves, pace=pace, measured=True),))


@with_story(REMEDY, "Liu et al. (2023)", like=GAME)
def mcd(options: Options) -> Scheme:
    """MCD (Liu et al., 2023): the selection must give the predictor the same distribution as the whole text."""
    return _apart(options, (1.0, FullTextDivergence()))


@with_story(REMEDY, "Liu et al. (2024)", like=GAME)
def mrd(options: Options) -> Scheme:
    """MRD (Liu et al., 2024): the rest must give the predictor another distribution than the whole text."""
    # differs from Liu et al. (2024): the predictor also learns from the selection, by which it will be asked
    return _apart(options, (-1.0, FullTextDivergence("rest")), "rest")


@with_story(REMEDY, "Liu et al. (2025)", like=GAME)
def n2r(options: Options) -> Scheme:
    """N2R (Liu et al., 2025): the selection must give the predictor's hidden state a large norm."""
    # differs from Liu et al. (2025): the predictor also learns from all words, so that it knows more than was selected
    return _apart(options, (1.0, losses.NegativeLogNorm()))


def _apart(options: Options, wanted: tuple[float, Term], *more: str) -> Scheme:
    """The predictor is trained on the selection, all words and `more` views; the selector minimises `wanted`."""
    views = ("selected", "all", *more)
    learnt = Move(("predictor",), tuple((1.0, AnswerCrossEntropy(view=view, stopped=True)) for view in views))
    moves = learnt, Move(("selector",), (wanted, *short(options)))
    return Scheme(options.rules(GumbelStraightThrough()), (Stage(moves, pace={"selector": 2.5}),))


# Games with a critic, who reads the rest

CRITIC = "Three-player game: a critic reads the rest, and must not be able to answer"


@with_story(CRITIC, "Yu et al. (2019)", like=GAME)
def three_player(options: Options) -> Scheme:
    """Predictor and critic each minimise their cross-entropy; the selector widens the gap between them."""
    stage = Stage((answers(stopped=True), *_criticised(options)))
    return Scheme(options.rules(Bernoulli()), (stage,), (*READERS, "critic"), epoch_score=CriticGap())


@with_story(CRITIC, "Yu et al. (2019)", like=GAME)
def introspective(options: Options) -> Scheme:
    """The same with masks conditioned on the guess of a guide, who reads all words."""
    halves: Terms = tuple((0.5, AnswerCrossEntropy(stopped=True, guessed=guessed)) for guessed in (False, True))
    moves = answers(reader="guide", view="all"), Move(("predictor",), halves), *_criticised(options)
    rules = options.rules(Bernoulli(), condition="guess")
    return Scheme(rules, (Stage(moves),), (*READERS, "critic", "guide"), epoch_score=CriticGap())


def _criticised(options: Options) -> tuple[Move, Move]:
    """The moves of the critic, and of the selector."""
    # differs from the code of Yu et al. (2019): costs are cross-entropies, not errors, their running mean is the
    # baseline, and nothing is explored beside what is drawn
    terms: Terms = ((1.0, AnswerCrossEntropy()), (3.0, losses.CriticMargin()), *short(options))
    return answers(reader="critic", view="rest", stopped=True), Move(("selector",), terms)


# A mask for each class


@with_story(
    "CAR: for each class the words that support it, also where it is not the true one", "Chang et al. (2019)", like=GAME
)
def car(options: Options) -> Scheme:
    """The predictor, told whose mask it reads, minimises cross-entropy; mask t maximises the probability of class t."""
    # differs from Chang et al. (2019): any number of classes, one network selects for all of them, the predictor begins
    # with whole texts, and where no label may be known, masks depend on the guess of a guide who reads all
    convince = (
        (1.0, losses.Convincing()),
        (options.weight("size", 5.0), losses.Sizes(options.rate)),
        (options.weight("continuity", 0.5), Continuity()),
    )
    rules = options.rules(StraightThrough(), masks=options.classes, condition="label", classwise=True)
    guide = answers(reader="guide", view="all")
    tell = Move(("predictor", "paths"), ((1.0, losses.AllMasksCrossEntropy()),))
    begin = Stage((guide, answers(view="all")), share=0.2)
    game = Stage((guide, tell, Move(("selector",), convince)), share=0.8)
    return Scheme(rules, (begin, game), (*READERS, "guide"), ("paths",), LatestAccurate())


# A teacher reads whole texts first

FRESH = "FRESH: words salient to a teacher, and a predictor trained on these alone"

# differs from Jain et al. (2020): not attention, which finds only half of what was planted for a recurrent teacher
SALIENCY = "lrp"

# differs from Jain et al. (2020): teacher, extractor and predictor share embeddings, which the teacher alone learns, so
# that whatever is done to an embedding is seen by all of them
SUPPORT = answers("teacher", "embedding", reader="teacher", view="all")
ANSWER = answers("body", stopped=True)


@with_story(FRESH, "Jain et al. (2020)", like=GAME)
def fresh(options: Options, saliency: str = SALIENCY, rule: str = "top") -> Scheme:
    """A teacher is trained on all words; a new predictor is trained on the words most salient to it."""
    rules = options.rules(Saliency(), rule, reading="delete", saliency=saliency)
    stages = Stage((SUPPORT,), share=0.5), Stage((ANSWER,), share=0.5, decoded=True)
    return Scheme(rules, stages, readers=("predictor", "teacher"))


@with_story(FRESH, "Jain et al. (2020)", like=GAME)
def fresh_tagged(options: Options, saliency: str = SALIENCY, rule: str = "top") -> Scheme:
    """The same with an extractor between, trained to select what is salient to the teacher."""
    rules = options.rules(Bernoulli(), rule, reading="delete")
    tag = Move(("selector",), ((1.0, losses.Imitation(saliency, rules.decoding)),))
    stages = Stage((SUPPORT,), share=0.4), Stage((tag,), share=0.3), Stage((ANSWER,), share=0.3, decoded=True)
    return Scheme(rules, stages, readers=(*READERS, "teacher"))


@with_story("DMR: distribution matching between selections and whole texts", "Huang et al. (2021)", like=GAME)
def dmr(options: Options) -> Scheme:
    """A teacher is trained on all words; selector and predictor match its outputs and moments of its hidden states."""
    # differs from Huang et al. (2021): the predictor begins with whole texts, too, and then learns slowly; else it soon
    # takes the words of one class for it, and their absence for the other
    begin = Stage((SUPPORT, answers("body", view="all")), share=0.3)
    matched: Terms = ((1.0, losses.Distillation()), (1.0, losses.Moments()), *short(options, "batch"))
    (stage,) = together(*matched, players=("selector", "body"))
    match = Stage(stage.moves, share=0.7, pace={"body": 0.1})
    return Scheme(options.rules(GumbelStraightThrough()), (begin, match), (*READERS, "teacher"))


# Gates for a trained model

LIMIT = 0.1  # of KL(P(all) ‖ P(selected)), on average


def gates(options: Options, limit: float = LIMIT) -> Scheme:
    """Trains the gates alone, for a trained model: the fewest words that keep its prediction within the limit.

    How many these are is for the limit to say, so the rate that was asked for is not used.
    """
    # differs from the code of De Cao et al. (2020): the expected share of open gates is lowered, not the sum of its
    # logarithms, and gates read the states of the last layer alone
    terms = (1.0, Size(kind="plain", of="chance")), (1.0, losses.Constraint(FullTextDivergence(), limit))
    rules = Rules(options.units, HardConcrete(0.2, -0.2, 1.0), Decoding("threshold"), reads="all")
    stage = Stage((Move(("selector", "blank", "multiplier"), terms),), pace={"multiplier": 100.0})
    return Scheme(rules, (stage,), ("predictor",), ("blank", "multiplier"), Sparsest(limit))


@with_story(
    "DiffMask: gates that close on all words that a trained model does not need", "De Cao et al. (2020)", like=GAME
)
def diffmask(options: Options, limit: float = LIMIT) -> Scheme:
    """Trains a predictor on all words, then gates that explain it while it stays frozen."""
    scheme = gates(options, limit)
    first = Stage((answers(view="all"),), share=0.4)
    return Scheme(scheme.rules, (first, *scheme.stages), scheme.readers, scheme.extras, scheme.epoch_score)


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


# Masks that stand for concepts

CONCEPTS = "Concept model, whose masks stand for concepts"


@with_story(CONCEPTS, "Bouchacourt and Denoyer (2019)", like=GAME)
def educe(options: Options) -> Scheme:
    """Bouchacourt and Denoyer (2019): an excerpt for each concept, and a linear decision on which are present."""
    masks, rate = _shared(options)
    excerpt, decoding = Excerpt(longest=3, temperature=1.0), Decoding("window", rate)
    rules = Rules(options.units, excerpt, decoding, masks, options.reading, answers="presence")
    penalties = (0.02, losses.Consistency()), (options.weight("size", 0.02), losses.Presence())
    return _conceptual(rules, *penalties)


@with_story(CONCEPTS, "Antognini and Faltings (2021)", like=GAME)
def conrat(options: Options) -> Scheme:
    """Antognini and Faltings (2021): an excerpt for each concept, and the sum of their votes."""
    # differs from Antognini and Faltings (2021): no teacher, and no words pruned beforehand
    masks, rate = _shared(options)
    rules = Rules(options.units, Window(rate), Decoding("window", rate), masks, options.reading, answers="votes")
    penalties = (options.weight("size", 0.5), losses.Overlap(rate)), (0.05, losses.ConceptSimilarity())
    return _conceptual(rules, *penalties)


def _shared(options: Options) -> tuple[int, float]:
    """The number of concepts, by default two for each class, and each one's share of the words."""
    concepts = 2 * options.classes if options.concepts is None else options.concepts
    return concepts, options.rate / concepts


def _conceptual(rules: Rules, *penalties: tuple[float, Term]) -> Scheme:
    """All players minimise the cross-entropy of the concepts' decision, and the penalties."""
    move = Move((*BOTH, "concepts"), ((1.0, losses.ConceptCrossEntropy()), *penalties))
    return Scheme(rules, (Stage((move,)),), extras=("concepts",))


RECIPES: dict[str, Callable[[Options], Scheme]] = {
    "lei": lei,
    "fresh": fresh,
    "fresh_tagged": fresh_tagged,
    "diffmask": diffmask,
    "three_player": three_player,
    "introspective": introspective,
    "car": car,
    "dmr": dmr,
    "bottleneck": bottleneck,
    "spectra": spectra,
    "hardkuma": hardkuma,
    "rnp": rnp,
    "fr": fr,
    "dr": dr,
    "mcd": mcd,
    "mrd": mrd,
    "n2r": n2r,
    "educe": educe,
    "conrat": conrat,
}

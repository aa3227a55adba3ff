"""Networks whose reasons are known by construction: weights set by hand, or every word's part a number of its own.

Each network of `ALGORITHMS` reads real texts with code words in them (`assay.data.coded`), answers by a rule,
and was never trained:

- *lexicon*: one of eight words of a class stands there.
- *negator*: a word of a class, which the word before it may turn into the other class.
- *order*: which of two words comes first.
- *pair*: both words of a class stand there, in any order.

A recurrent network holds what it has seen in hidden units that are written when a code word comes and keep their value;
a second code word opens the gate of a third unit. The seed says where the answer is read: off both directions, or off
the one ahead or the one behind, whose other half then does nothing. Where every position holds the answer attention is
even, else it seeks the positions that do.

In a transformer the words lie in the directions of the residual stream in which the sinusoids hardly move. A head of
the first layer looks for the partner of a pair, or at the previous position (it turns the fast sinusoids by one step);
the feed-forward layer joins what it brings with the word itself. The seed says how the answer reaches the decoder:
carried to all positions by a head of the second layer, or found by the attention that pools.

All other weights are small noise, or units that work at random and are hardly read; embeddings of all words have one
norm and stand in random directions but for the share that says what a code word means; units are shuffled and turned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.data.batches import Tokenised, tokenise
from assay.data.coded import code_words, coded
from assay.data.examples import Corpus, Example
from assay.data.text import TextOptions, Tokeniser
from assay.errors import unknown
from assay.models.config import Architecture, Training
from assay.models.encoders import Additive, Block, Recurrent, Transformer, positions
from assay.models.network import Classifier
from assay.models.recipes import Recipe, drawn, train
from assay.models.store import Trained
from assay.models.textmodel import predict
from assay.types import Batch

SIZES = (300, 150, 450)
"""At most so many texts are kept of train, dev and test."""

BIAS = "bias"
Sum = Mapping[str, float]
"""A weighted sum of what goes by these names; the weight of `BIAS` is a constant."""

SHARP = 12.0  # from a closed gate to an open one, in logits
NOISE = 0.03  # of what a unit reads besides
GAIN, NO_CODE = 12.0, 5.0  # logits of a class whose answer is there, and of no code
SEEK = 8.0  # what one unit that holds the answer adds to a score of attention, or else takes away


# Words


@dataclass(frozen=True)
class Code:
    """The embeddings of all words, and the direction in which each meaning stands."""

    vectors: Tensor
    directions: dict[str, Tensor]


def _code(vocabulary: Sequence[str], meanings: Mapping[str, str], size: int, chance: torch.Generator) -> Code:
    """Embeddings of norm √2: words have 1 in the direction of what they mean, and noise where nothing is meant."""
    names = sorted({*meanings.values()})
    places = {word: place for place, word in enumerate(vocabulary)}
    said = 0.02 * _normal(chance, len(vocabulary), len(names))
    for word, name in meanings.items():
        if word in places:
            said[places[word], names.index(name)] += 1 + 0.03 * _normal(chance, 1).clamp(-2, 2).item()
    noise = _normal(chance, len(vocabulary), size - len(names))
    noise *= (2 - said.square().sum(-1, keepdim=True)).sqrt() / noise.norm(dim=-1, keepdim=True)
    turn = _rotation(chance, size)
    vectors = torch.cat([said, noise], dim=-1) @ turn.T
    vectors[0] = 0  # padding
    return Code(vectors, {name: turn[:, place] for place, name in enumerate(names)})


def _normal(chance: torch.Generator, *sizes: int) -> Tensor:
    return torch.randn(*sizes, generator=chance, dtype=torch.float64)


def _rotation(chance: torch.Generator, size: int) -> Tensor:
    turned: Tensor = torch.linalg.qr(_normal(chance, size, size))[0]
    return turned


def _signs(chance: torch.Generator, size: int) -> Tensor:
    return _normal(chance, size).sign()


def _combined(terms: Sum, directions: Mapping[str, Tensor], size: int) -> Tensor:
    """The weighted sum of directions; names of other things, and constants, count nothing."""
    found = torch.zeros(size, dtype=torch.float64)
    for name, weight in terms.items():
        if name in directions:
            found += weight * directions[name]
    return found


# What all networks have above their encoder


def _pool(network: Classifier, watched: Sequence[Tensor], chance: torch.Generator) -> None:
    """Attention that seeks states whose product with any of these vectors is 1 rather than 0; else it is about even."""
    alignment = network.alignment
    assert isinstance(alignment, Additive)
    rows, size = alignment.project.weight.shape
    weight = _normal(chance, rows, size) * 0.4 / math.sqrt(size)
    bias, score = 0.1 * _normal(chance, rows), 0.1 * _normal(chance, rows)
    for row, vector in enumerate(watched):
        weight[row] += 3 * vector
        bias[row], score[row] = -1.5, SEEK
    order, signs = torch.randperm(rows, generator=chance), _signs(chance, rows)
    _set(alignment.project.weight, (signs[:, None] * weight)[order])
    _set(alignment.project.bias, (signs * bias)[order])
    _set(alignment.score.weight, (signs * score)[order][None])


def _decide(network: Classifier, answers: Sequence[Tensor], chance: torch.Generator) -> None:
    """A decoder that says "no code", but where the product of the mean state with the vector of a class is about 1."""
    size = network.decoder.in_features
    weight = _normal(chance, 1 + len(answers), size) * 0.4 / math.sqrt(size)
    weight[1:] += GAIN * torch.stack([*answers])
    _set(network.decoder.weight, weight)
    _set(network.decoder.bias, torch.tensor([NO_CODE, *[0.0] * len(answers)]))


def _set(parameter: Tensor, values: Tensor) -> None:
    with torch.no_grad():
        parameter.copy_(values)


# Recurrent networks


@dataclass(frozen=True)
class Unit:
    """One hidden unit: when it is written and what with, as sums of meanings and of other units; it may hold that."""

    opens: Sum
    value: Sum
    holds: bool = True


@dataclass(frozen=True)
class Direction:
    """The units of one direction, what of them says each class, and those in which attention sees an answer."""

    units: dict[str, Unit]
    answers: tuple[Sum, Sum]
    watched: tuple[Sum, ...]


Recurrence = Callable[[], tuple[Direction, Direction]]
"""The directions ahead and behind, each of which finds the answer alone; a unit that is written counts as 1."""

UNITS = 24  # a direction


def _seen(name: str) -> Unit:
    """A unit that holds whether a word of this meaning has been read."""
    return Unit({name: SHARP, BIAS: -SHARP / 2}, {name: 3})


def _then(earlier: str, name: str) -> Unit:
    """A unit that holds whether such a word came when another unit was on."""
    return Unit({name: 1.5 * SHARP, earlier: SHARP, BIAS: -2 * SHARP}, {name: 3})


def _lexicon() -> tuple[Direction, Direction]:
    units = {f"seen {name}": _seen(name) for name in ("first", "second")}
    answers = ({"seen first": 1.0}, {"seen second": 1.0})
    each = Direction(units, answers, answers)
    return each, each


def _order() -> tuple[Direction, Direction]:
    """Behind, what was read first stands last."""
    units = {"seen a": _seen("a"), "seen b": _seen("b"), "a then b": _then("seen a", "b")}
    units["b then a"] = _then("seen b", "a")
    answers = ({"a then b": 1.0}, {"b then a": 1.0})
    return Direction(units, answers, answers), Direction(units, answers[::-1], answers)


def _pair() -> tuple[Direction, Direction]:
    pairs = (("a", "b"), ("c", "d"))
    units = {f"seen {name}": _seen(name) for pair in pairs for name in pair}
    for one, other in pairs:
        units[f"{one} then {other}"] = _then(f"seen {one}", other)
        units[f"{other} then {one}"] = _then(f"seen {other}", one)
    first, second = ({f"{a} then {b}": 1.0, f"{b} then {a}": 1.0} for a, b in pairs)
    each = Direction(units, (first, second), tuple({name: 1.0} for name in (*first, *second)))
    return each, each


def _negator() -> tuple[Direction, Direction]:
    """Units that hold a sign, which is turned if the word before was the negator; behind, once that is read."""
    always, either, sign = {BIAS: SHARP / 2}, {"a": SHARP, "b": SHARP}, {"a": 3.0, "b": -3.0}
    ahead = {
        "negated": Unit(always, {"negator": 3}, holds=False),
        "plain": Unit(either | {"negated": -SHARP, BIAS: -SHARP / 2}, sign),
        "turned": Unit(either | {"negated": SHARP, BIAS: -1.5 * SHARP}, {"a": -3.0, "b": 3.0}),
    }
    behind = {
        "just a": Unit(always, {"a": 3}, holds=False),
        "just b": Unit(always, {"b": 3}, holds=False),
        "plain": Unit(either | {BIAS: -SHARP / 2}, sign),
        "a turned": Unit({"negator": SHARP, "just a": 1.5 * SHARP, BIAS: -2 * SHARP}, {"negator": 3}),
        "b turned": Unit({"negator": SHARP, "just b": 1.5 * SHARP, BIAS: -2 * SHARP}, {"negator": 3}),
    }
    first = {"plain": 1.0, "a turned": -2.0, "b turned": 2.0}
    return Direction(ahead, *_signed({"plain": 1, "turned": 1})), Direction(behind, *_signed(first))


def _signed(first: Sum) -> tuple[tuple[Sum, Sum], tuple[Sum, ...]]:
    """Answers of units that hold a sign, the second being the opposite of the first, and what attention sees."""
    watched = tuple({name: sign} for name in first for sign in (1.0, -1.0))
    return (first, {name: -weight for name, weight in first.items()}), watched


def _gates(units: Mapping[str, Unit], lstm: bool) -> dict[str, list[Sum]]:
    """What each gate of each unit reads, in the order in which torch stacks the gates."""
    opens, value = ([getattr(unit, part) for unit in units.values()] for part in ("opens", "value"))
    if lstm:
        keeps: list[Sum] = [{BIAS: 9.0 if unit.holds else -6.0} for unit in units.values()]
        return {"input": opens, "forget": keeps, "candidate": value, "output": [{BIAS: 4.0}] * len(units)}
    closed: list[Sum] = [{name: -weight for name, weight in terms.items()} for terms in opens]
    held: list[Sum] = [{**unit.value, name: 1.4} if unit.holds else unit.value for name, unit in units.items()]
    return {"reset": [{BIAS: 4.0}] * len(units), "update": closed, "candidate": held}


def _set_direction(
    units: Mapping[str, Unit], cell: nn.LSTM | nn.GRU, code: Code, chance: torch.Generator
) -> dict[str, Tensor]:
    """Sets the weights of one direction; returns the vectors over its states that read each unit, 1 where it is on."""
    lstm = isinstance(cell, nn.LSTM)
    size, level = cell.hidden_size, 0.74 if lstm else 0.92
    places = torch.randperm(size, generator=chance)[: len(units)].tolist()
    signs, axes = _signs(chance, size), torch.eye(size, dtype=torch.float64) / level
    readers = {name: axes[place] * signs for name, place in zip(units, places, strict=True)}
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    for gate, sums in _gates(units, lstm).items():
        embedded, recurred, constant = _random_gate(size, code.vectors.shape[1], chance)
        for place, terms in zip(places, sums, strict=True):
            turned = signs[place] if gate == "candidate" else 1.0
            embedded[place] = NOISE * _normal(chance, embedded.shape[1])
            embedded[place] += turned * _combined(terms, code.directions, embedded.shape[1])
            recurred[place] = NOISE / 2 * _normal(chance, size)
            recurred[place, places] = 0
            recurred[place] += turned * _combined(terms, readers, size)
            constant[place] = turned * terms.get(BIAS, 0.0)
        parts.append((embedded, recurred, constant))
    for name, each in zip(("weight_ih_l0", "weight_hh_l0", "bias_ih_l0"), zip(*parts, strict=True), strict=True):
        _set(getattr(cell, name), torch.cat([*each]))
    nn.init.zeros_(cell.get_parameter("bias_hh_l0"))
    return readers


def _random_gate(size: int, embedding: int, chance: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Weights of embeddings and of states, and constants, of units that work at random."""
    return 0.5 * _normal(chance, size, embedding), 0.3 * _normal(chance, size, size), 0.3 * _normal(chance, size)


def _recurrent(network: Classifier, code: Code, recurrence: Recurrence, seed: int, chance: torch.Generator) -> None:
    """Sets a recurrent network whose answer is read off both directions, the one ahead or the one behind."""
    encoder = network.encoder
    assert isinstance(encoder, Recurrent)
    size = network.architecture.hidden
    answers = torch.zeros(2, 2 * size, dtype=torch.float64)
    watched: list[Tensor] = []
    for place, (each, cell) in enumerate(zip(recurrence(), (encoder.ahead, encoder.behind), strict=True)):
        used = each if seed % 3 in (0, place + 1) else Direction({}, ({}, {}), ())
        readers = _set_direction(used.units, cell, code, chance)
        padding = (place * size, (1 - place) * size)
        watched += [F.pad(_combined(terms, readers, size), padding) for terms in used.watched]
        answers += torch.stack([F.pad(_combined(terms, readers, size), padding) for terms in used.answers])
    even = seed % 3 == 0 and recurrence in (_lexicon, _negator)  # together the directions answer at every position
    _pool(network, [] if even else watched, chance)
    _decide(network, [*answers], chance)


# Transformers

LOUD = 4.0  # how far one embedding of norm 1, or one finding, moves the residual stream
STEADY = 16.0  # a constant of the residual stream, so large that layer norms scale all positions about alike
STEP = 60.0  # the score of the previous position; the next best is a quarter below
FOUND = 16.0  # the score of a partner, or of an answer that is carried
HEADS = 4


@dataclass(frozen=True)
class Stream:
    """The residual stream: a direction for each meaning and finding, and by how much layer norms scale it."""

    directions: dict[str, Tensor]
    scale: float

    def reads(self, terms: Sum) -> Tensor:
        """The vector whose product with a normed state is that sum, where 1 stands for what is there."""
        return _combined(terms, self.directions, SIZE) / (LOUD * self.scale)

    def writes(self, name: str) -> Tensor:
        return LOUD * self.directions[name]


SIZE, FINDINGS = 128, ("got a", "got b", "got c", "got d", "first found", "second found", "first told", "second told")
LONGEST = 1000


@dataclass(frozen=True)
class Head:
    """What a head asks for and offers, with scores that add up over rows, and what it moves from where to where."""

    queries: Tensor
    keys: Tensor
    constants: Tensor  # of the queries
    moves: Mapping[str, str]


def _quiet(chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """Directions in which the sinusoids hardly move and the mean is 0, turned at random; and all others."""
    table = positions(LONGEST, SIZE).double()
    ones = torch.ones(1, SIZE, dtype=torch.float64)
    axes = torch.linalg.svd(torch.cat([table, 100 * ones]))[2]
    still = (table @ axes.T).abs().amax(0) < 0.05
    return axes[still].T @ _rotation(chance, int(still.sum())), axes[~still].T


def _stream(network: Classifier, code: Code, chance: torch.Generator) -> Stream:
    """Puts the embeddings into quiet directions; some of the others are for what the layers find."""
    encoder = network.encoder
    assert isinstance(encoder, Transformer)
    width = code.vectors.shape[1]
    quiet, _ = _quiet(chance)
    embedded, fresh = quiet[:, :width], quiet[:, width : width + len(FINDINGS)]
    _set(encoder.project.weight, LOUD * embedded + NOISE / 4 * _normal(chance, SIZE, width))
    constant = STEADY * quiet[:, width + len(FINDINGS)]
    _set(encoder.project.bias, constant)
    directions = {name: embedded @ vector for name, vector in code.directions.items()}
    directions |= {name: fresh[:, place] for place, name in enumerate(FINDINGS)}
    words = code.vectors[torch.randint(4, len(code.vectors), (LONGEST,), generator=chance)]
    states = positions(LONGEST, SIZE).double() + LOUD * words @ embedded.T + constant
    return Stream(directions, float((1 / states.std(-1, correction=0)).mean()))


def _seeker(stream: Stream, partners: Mapping[str, str], moves: Mapping[str, str]) -> Head:
    """A head by which each word seeks its partner; those without one attend evenly."""
    queries = torch.stack([stream.reads({name: FOUND}) for name in partners])
    keys = torch.stack([stream.reads({name: 1.0}) for name in partners.values()])
    return Head(queries, keys, torch.zeros(len(queries), dtype=torch.float64), moves)


def _carrier(stream: Stream) -> Head:
    """A head by which all positions attend to those at which an answer was found."""
    keys = stream.reads({"first found": 1, "second found": 1})[None]
    constants = torch.tensor([FOUND], dtype=torch.float64)
    moves = {"first found": "first told", "second found": "second told"}
    return Head(torch.zeros_like(keys), keys, constants, moves)


def _stepper(stream: Stream, moves: Mapping[str, str], chance: torch.Generator) -> Head:
    """A head that attends to the previous position: the sum of cos(r(t − 1 − s)) over fast rates r is largest there."""
    _, moving = _quiet(chance)
    table = positions(LONGEST, SIZE).double()
    axes = moving - moving.mean(0)  # what the mean of a state adds is not read
    fast = 2 * (SIZE // HEADS // 2 - 4)
    readers = axes @ torch.linalg.lstsq(table @ axes, table[:, :fast], rcond=1e-6, driver="gelsd").solution
    sines, cosines = readers.T[::2] / stream.scale, readers.T[1::2] / stream.scale
    rates = torch.exp(torch.arange(0, fast, 2, dtype=torch.float64) * (-math.log(10_000.0) / SIZE))
    weights = STEP * rates**2 / (rates**2).sum()
    turned = torch.cat([
        (sines * rates.cos()[:, None] - cosines * rates.sin()[:, None]) * weights[:, None],
        (cosines * rates.cos()[:, None] + sines * rates.sin()[:, None]) * weights[:, None],
    ])  # fmt: skip
    return Head(turned, torch.cat([sines, cosines]), torch.zeros(fast, dtype=torch.float64), moves)


def _set_block(
    block: Block, stream: Stream, head: Head | None, joins: Sequence[tuple[Sum, str]], chance: torch.Generator
) -> None:
    """A layer of one head that does something and of some feed-forward units; the rest is noise.

    Each unit says at which sum, of 1 or more rather than 0 or less, it writes what.
    """
    project, merge = NOISE / 2 * _normal(chance, 3, HEADS, SIZE // HEADS, SIZE), NOISE / 2 * _normal(chance, SIZE, SIZE)
    constants = torch.zeros(3, HEADS, SIZE // HEADS, dtype=torch.float64)
    if head is not None:
        _set_head(project, constants, merge, stream, head, chance)
    _set(block.project.weight, project.reshape(3 * SIZE, SIZE))
    _set(block.project.bias, constants.flatten())
    _set(block.merge.weight, merge)
    _set(block.merge.bias, torch.zeros(SIZE))
    _set_units(block.mix, stream, joins, chance)


def _set_head(
    project: Tensor, constants: Tensor, merge: Tensor, stream: Stream, head: Head, chance: torch.Generator
) -> None:
    """Puts one head in the place of one of noise; what is in it is turned at random."""
    place, size = int(torch.randint(HEADS, (), generator=chance)), SIZE // HEADS
    one, other = _rotation(chance, size), _rotation(chance, size)
    rows = len(head.queries)
    project[0, place] = one[:, :rows] @ head.queries * math.sqrt(size)
    constants[0, place] = one[:, :rows] @ head.constants * math.sqrt(size)
    project[1, place] = one[:, :rows] @ head.keys
    values = torch.stack([stream.reads({name: 1.0}) for name in head.moves])
    project[2, place] = other[:, : len(values)] @ values
    written = torch.stack([stream.writes(name) for name in head.moves.values()], dim=-1)
    merge[:, place * size : (place + 1) * size] = written @ other[:, : len(values)].T


def _set_units(mix: nn.Sequential, stream: Stream, joins: Sequence[tuple[Sum, str]], chance: torch.Generator) -> None:
    below, _, above = mix
    assert isinstance(below, nn.Linear) and isinstance(above, nn.Linear)
    units = below.out_features
    read, written = NOISE * _normal(chance, units, SIZE), NOISE / 2 * _normal(chance, SIZE, units)
    constant = torch.zeros(units, dtype=torch.float64)
    for place, (terms, name) in zip(torch.randperm(units, generator=chance).tolist(), joins, strict=False):
        read[place] = stream.reads({each: SHARP * weight for each, weight in terms.items()})
        constant[place] = SHARP * terms[BIAS]
        written[:, place] = stream.writes(name) / (SHARP / 2)  # GELU is about the identity there
    _set(below.weight, read)
    _set(below.bias, constant)
    _set(above.weight, written)
    _set(above.bias, torch.zeros(SIZE))


Joins = list[tuple[Sum, str]]
Stack = Callable[[Stream, torch.Generator], tuple[Head | None, Joins]]
"""What the first layer does."""


def _lexicon_stack(stream: Stream, chance: torch.Generator) -> tuple[Head | None, Joins]:
    return None, [({name: 1, BIAS: -0.5}, f"{name} found") for name in ("first", "second")]


def _pair_stack(stream: Stream, chance: torch.Generator) -> tuple[Head | None, Joins]:
    partners = {"a": "b", "b": "a", "c": "d", "d": "c"}
    classes = {"a": "first", "b": "first", "c": "second", "d": "second"}
    joins: Joins = [
        ({name: 1, f"got {other}": 1, BIAS: -1.4}, f"{classes[name]} found") for name, other in partners.items()
    ]
    return _seeker(stream, partners, {name: f"got {name}" for name in partners}), joins


def _negator_stack(stream: Stream, chance: torch.Generator) -> tuple[Head | None, Joins]:
    joins: Joins = []
    for name, plain, turned in (("a", "first", "second"), ("b", "second", "first")):
        joins.append(({name: 1, "got a": -1, BIAS: -0.5}, f"{plain} found"))
        joins.append(({name: 1, "got a": 1, BIAS: -1.4}, f"{turned} found"))
    return _stepper(stream, {"negator": "got a"}, chance), joins


def _transformer(network: Classifier, code: Code, stack: Stack, seed: int, chance: torch.Generator) -> None:
    """Sets a transformer whose answer is carried to all positions, or found by the attention that pools."""
    encoder = network.encoder
    assert isinstance(encoder, Transformer)
    first, second = (block for block in encoder.blocks if isinstance(block, Block))
    stream = _stream(network, code, chance)
    carried = seed % 2 == 0
    _set_block(first, stream, *stack(stream, chance), chance)
    _set_block(second, stream, _carrier(stream) if carried else None, [], chance)
    answers = [stream.reads({f"{name} {'told' if carried else 'found'}": 1.0}) for name in ("first", "second")]
    _pool(network, [] if carried else answers, chance)
    _decide(network, answers, chance)


# All of them


@dataclass(frozen=True)
class Algorithm:
    """A rule, the meanings of its code words in their order, an encoder, and what sets its weights."""

    rule: str
    meanings: tuple[str, ...]
    architecture: Architecture
    sets: Callable[[Classifier, Code, int, torch.Generator], None]


def _by_recurrence(rule: str, meanings: Sequence[str], cell: str, recurrence: Recurrence) -> Algorithm:
    architecture = Architecture(encoder=cell, embedding=WIDTH, hidden=UNITS, alignment_size=16)

    def sets(network: Classifier, code: Code, seed: int, chance: torch.Generator) -> None:
        _recurrent(network, code, recurrence, seed, chance)

    return Algorithm(rule, tuple(meanings), architecture, sets)


def _by_layers(rule: str, meanings: Sequence[str], stack: Stack) -> Algorithm:
    architecture = Architecture(encoder="transformer", embedding=WIDTH, hidden=SIZE // 2, alignment_size=16)

    def sets(network: Classifier, code: Code, seed: int, chance: torch.Generator) -> None:
        _transformer(network, code, stack, seed, chance)

    return Algorithm(rule, tuple(meanings), architecture, sets)


WIDTH = 32  # of embeddings
SYNONYMS = ("first",) * 8 + ("second",) * 8
NEGATION = ("a", "b", "negator")

ALGORITHMS: dict[str, Algorithm] = {
    "lexicon-lstm": _by_recurrence("synonyms", SYNONYMS, "lstm", _lexicon),
    "negator-lstm": _by_recurrence("negation", NEGATION, "lstm", _negator),
    "order-lstm": _by_recurrence("order", "ab", "lstm", _order),
    "pair-lstm": _by_recurrence("pair", "abcd", "lstm", _pair),
    "lexicon-gru": _by_recurrence("synonyms", SYNONYMS, "gru", _lexicon),
    "negator-gru": _by_recurrence("negation", NEGATION, "gru", _negator),
    "order-gru": _by_recurrence("order", "ab", "gru", _order),
    "pair-gru": _by_recurrence("pair", "abcd", "gru", _pair),
    "lexicon-transformer": _by_layers("synonyms", SYNONYMS, _lexicon_stack),
    "negator-transformer": _by_layers("negation", NEGATION, _negator_stack),
    "pair-transformer": _by_layers("pair", "abcd", _pair_stack),
}
"""Every algorithm by the name of what it does and of what it runs on."""


def built(algorithm: str, host: Corpus, seed: int) -> tuple[Trained, Corpus]:
    """A network that was set by hand to run an algorithm, and real texts with the code words that it reads.

    The evidence is every word that decides. No text of "no code" has any.
    """
    if algorithm not in ALGORITHMS:
        raise unknown("algorithm", algorithm, ALGORITHMS)
    chosen = ALGORITHMS[algorithm]
    whole = coded(chosen.rule, host, seed)
    train_size, dev_size, test_size = SIZES
    corpus = replace(
        whole,
        name=f"built:{algorithm}/{host.name}",
        train=whole.train[:train_size],
        dev=whole.dev[:dev_size],
        test=whole.test[:test_size],
    )
    texts = (example.text for split in (corpus.train, corpus.dev, corpus.test) for example in split)
    tokeniser = Tokeniser.fit(texts, TextOptions(min_count=1))
    meanings = dict(zip(code_words(whole.name, seed), chosen.meanings, strict=False))
    chance = torch.Generator().manual_seed(Random(f"{corpus.name} {seed}").getrandbits(62))
    code = _code(tokeniser.vocabulary, meanings, chosen.architecture.embedding, chance)
    network = drawn(chosen.architecture, len(tokeniser.vocabulary), len(corpus.classes), seed)
    assert isinstance(network, Classifier)
    _set(network.embedding.weight, code.vectors)
    chosen.sets(network, code, seed, chance)
    return Trained(network.eval(), tokeniser, corpus.classes, {"corpus": corpus.name, "seed": seed}), corpus


# Additive models


TASK = "task accuracy"


def additive(host: Corpus, seed: int) -> tuple[Trained, Corpus]:
    """A trained model whose logits are the mean of one part a word, and its texts with the fewest words that decide.

    The parts are those of the embeddings, or with an even seed of their projections with ReLU. Labels are what the
    model says; the evidence is the smallest set of words with the largest parts without which it says something else.
    Left out are texts that take more than a third of their words, and those in which another word has the same part
    as the last of the evidence, so that it could stand there as well. `TASK` of its history is its accuracy on the
    labels that the texts had.
    """
    encoder = ("average", "none")[seed % 2]
    architecture = Architecture(encoder=encoder, embedding=50, hidden=32, projection="uniform")
    model = train(host, Recipe(architecture, TextOptions(), Training(epochs=4, seed=seed)))
    rows, _ = tokenise(host.test, model.tokeniser, model.tokeniser.options.longest)
    right = predict(model.network, rows).argmax(-1) == np.array([row.label for row in rows])
    model = replace(model, history=model.history | {TASK: float(right.mean())})
    splits = zip((host.train, host.dev, host.test), SIZES, strict=True)
    train_texts, dev_texts, test_texts = (_explained(model, examples[: 4 * size])[:size] for examples, size in splits)
    return model, Corpus(f"additive:{encoder}/{host.name}", model.classes, train_texts, dev_texts, test_texts)


def parts(model: Trained, ids: Tensor) -> Tensor:
    """The logits [T, C] of each word of an additive model by itself: the logits of a text are their mean."""
    network = model.network
    batch = Batch(ids[:, None], torch.ones_like(ids[:, None], dtype=torch.bool), torch.zeros_like(ids))
    with torch.no_grad():
        logits: Tensor = network(network.embed(batch), batch).logits.double()
    return logits


def _explained(model: Trained, examples: Sequence[Example]) -> tuple[Example, ...]:
    rows, _ = tokenise(examples, model.tokeniser, model.tokeniser.options.longest)
    return tuple(found for row in rows if (found := _deciding(model, row, examples[row.index])) is not None)


def _deciding(model: Trained, row: Tokenised, example: Example) -> Example | None:
    """The text with the words that decide, or None where they are too many or not the only ones of their size."""
    logits = parts(model, row.ids)
    label = int(logits.mean(0).argmax())
    order = (margins := logits[:, label] - logits[:, 1 - label]).argsort(descending=True, stable=True)
    ordered = margins[order]
    left = ordered.sum() - ordered.cumsum(0)  # without the first, the first two, ...
    longest = len(ordered) // 3
    gone = (left[:longest] < 0).nonzero()
    if not len(gone):
        return None
    size = int(gone[0]) + 1
    before = left[size - 2] if size > 1 else ordered.sum()
    if min(-left[size - 1], before, ordered[size - 1] - ordered[size]) < CLOSE:
        return None
    spans = [tuple(map(int, row.spans[place])) for place in sorted(order[:size].tolist())]
    return Example(example.text, label, tuple((start, end) for start, end in spans), planted=True)


CLOSE = 1e-4
"""Sums of parts that are nearer than this to a tie may be rounded to the other side of it."""

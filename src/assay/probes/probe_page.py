"""The page of a probe."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from assay.document import (
    Block,
    Bullets,
    Cell,
    Chart,
    Column,
    Document,
    Figure,
    Fold,
    Group,
    Heading,
    Headline,
    Pairs,
    Prose,
    Row,
    Section,
    Span,
    Table,
    Words,
    columns,
    grid,
    page_of,
    provenance,
    some,
    versions,
)
from assay.probes import drawings
from assay.probes.drawings import (
    FAINT,
    Answers,
    Cells,
    Probe,
    Relation,
    Shade,
    best_directions,
    real,
    relations,
    single,
)
from assay.writing import count, interval, listed, number, percent

# What the page on attention heads says: the headline, what each section found, how to read it, limits, papers

Part = dict[str, Any]

NAMES = {
    "relations": "dependency relations",
    "speech": "parts of speech",
    "coreference": "coreference",
    "negation": "negation",
    "pairs": "pairs of words",
    "importance": "head importance",
    "concepts": "concepts",
}
"""What each section is about."""

TITLES = {
    "speech": "Which kinds of words do heads look at?",
    "coreference": "Do heads find what a pronoun stands for?",
    "negation": "Do heads link words to the negation over them?",
    "pairs": "What do all heads together tell about two words?",
    "importance": "Which heads does the classifier need?",
    "concepts": "Does a class depend on a concept?",
}
READINGS = {
    "relations": "A head is right for a word when, of all other words of the sentence, the word attends most to the "
    "right one: its governor, or in the other direction a word that depends on it. The head was chosen on dev "
    "sentences and is scored on test sentences. The fixed offset is the best of three words to the left up to three "
    "to the right, chosen on dev sentences too: a head that only looks one word back gains nothing over it. The "
    "control repeats the whole search many times with random governors, the same for all words of a type; what it "
    "reaches, a search among so many heads reaches by luck. “Any relation” is all of them but punctuation.",
    "squares": "Each cell is a head (column) of a layer (row; the first, next to the words, on top): the darker, the "
    "more often right on test sentences, on one scale from 0 to 100 % for all. The ring is the head that was chosen "
    "on dev sentences.",
    "drawn": "The words stand twice: those that attend on the left, those attended to on the right. The broader and "
    "stronger a line, the larger the weight; weights below 4 % and those to special places of the model are left "
    "out, so a word may have no line. Bold words are those that the head is asked about; orange lines go from them "
    "to the right answer, blue lines elsewhere; those of other words are grey. A tick stands before a bold word that "
    "attends to the right answer more than to any other word, a cross before one that does not. Sentences and heads "
    "were not drawn by lot: they are those of the relations that lead most surely.",
    "speech": "Orange: of what the head gives to words, this part of speech gets more than even attention would give "
    "it; blue: less. The darkest shade is four times as much, or a fourth. In the control, types of words that are "
    "about as frequent have exchanged their tags: what is left is what a head gives to frequent or to rare words of "
    "any kind.",
    "coreference": "Right: of two names, the pronoun attends more to the one that it stands for. The confusion is "
    "the cross-entropy of the attention shared out between the two: lower is better, and 0.69 is a coin’s. The "
    "control draws the right name.",
    "negation": "Right: a word in the scope of a negation attends more to the word that negates than to any other. "
    "In the control other words of the sentence, drawn at random, stand in for the ones that negate.",
    "pairs": "A linear model reads the weights of all heads between two words, both ways, and guesses whether one "
    "governs the other, or in which relation. The control has random answers that depend on the types of the two "
    "words alone, so they can only be learnt by heart: what counts is the distance between the two (Hewitt and "
    "Liang, 2019).",
    "importance": "Importance is the mean size of the slope of the loss by a gate on the head: how fast the loss "
    "would change if the head were turned down a little. It was found on dev texts. In the curve, heads go one tenth "
    "at a time; where pruning by importance keeps more accuracy than a random order does, importance knows "
    "something. The band is the 95 % interval of the first line; the dotted line is the share of the commonest class.",
    "concepts": "A concept is the direction in which a linear model finds its examples among random texts. The score "
    "is the share of a class’s test texts whose logit rises when the hidden states move that way; all or none of them: "
    "the class depends on it, one way or the other. Directions between two sets of random texts say what luck reaches: "
    "both are found anew in each run, ranges hold 95 % of the runs, and a concept counts where the two differ by "
    "Welch’s t-test at .05, shared out among all concepts and classes (Bonferroni). First look at how often the "
    "direction tells examples apart that it has not seen: near 50 % it stands for nothing.",
}
LIMITS = (
    "Attention to a word is not use of it: a head may attend to the governor and pass on nothing of it. Probes say "
    "what is there to be read, not what the model does with it; only pruning asks that.",
    "A relation may be spread over several heads; the probe of single heads does not see that, that of pairs does.",
    "Weights go from word to word: the pieces of a word that is attended to are added up, those of a word that "
    "attends are averaged, and what goes to special places of the model is left out.",
    "Intervals take into account that words of one sentence are alike. They are those of one relation at a time: of "
    "many relations some will seem to lead by luck.",
)
PAPERS = (
    "Kevin Clark, Urvashi Khandelwal, Omer Levy, Christopher D. Manning (2019): What Does BERT Look At? An Analysis of "
    "BERT’s Attention. BlackboxNLP.",
    "Phu Mon Htut, Jason Phang, Shikha Bordia, Samuel R. Bowman (2019): Do Attention Heads in BERT Track Syntactic "
    "Dependencies? arXiv 1911.12246.",
    "Emily Reif, Ann Yuan, Martin Wattenberg, Fernanda Viégas, Andy Coenen, Adam Pearce, Been Kim (2019): Visualizing "
    "and Measuring the Geometry of BERT. NeurIPS.",
    "John Hewitt, Percy Liang (2019): Designing and Interpreting Probes with Control Tasks. EMNLP.",
    "Paul Michel, Omer Levy, Graham Neubig (2019): Are Sixteen Heads Really Better than One? NeurIPS.",
    "Been Kim, Martin Wattenberg, Justin Gilmer, Carrie Cai, James Wexler, Fernanda Viégas, Rory Sayres (2018): "
    "Interpretability Beyond Feature Attribution: Quantitative Testing with Concept Activation Vectors (TCAV). ICML.",
)


def headline(probe: Probe) -> str:
    """One sentence, with a colon between what was found and why."""
    found = single(relations(probe))
    if set(probe["sections"]) == {"concepts"}:
        return f"Which classes of {model(probe)} depend on which concepts: {_dependent(probe['sections']['concepts'])}"
    if not found:
        shown = listed([NAMES.get(name, name) for name in probe["sections"]])
        return f"What the heads of {model(probe)} attend to: {shown}, each beside its control."
    names = {each.relation for each in found}
    over = {each.relation for each in found if each.beats_offset}
    both = {each.relation for each in found if each.beats_both}
    if not both:
        lead = "No head finds a relation better than a fixed offset and chance do"
    elif len(both) == len(names):
        lead = "Every relation has a head that finds it better than position and chance do"
    else:
        lead = f"{'Most' if len(both) > len(names) / 2 else 'Some'} relations have a head that finds them better than "
        lead += "position and chance do"
    return f"{lead}: {_told(len(over), len(both), len(names))}"


def _told(over: int, both: int, all_of_them: int) -> str:
    """How many relations there are, and how many have a head that beats what it is held against."""
    noun = "relation" if all_of_them == 1 else "relations"
    sentence = (
        f"for {count(over)} of {count(all_of_them)} {noun}, the head that was best on dev sentences finds the right "
        "word in test sentences more often than the best fixed offset, beyond its 95 % interval"
    )
    if over and both == over:
        return f"{sentence}; {'it beats' if over == 1 else 'all of them beat'} the random control as well."
    return f"{sentence}; {count(both)} of them also {'beats' if both == 1 else 'beat'} the random control."


def leading(found: Sequence[Relation]) -> str | None:
    """The relation whose head leads most surely, as a sentence, or None where none leads."""
    best = next((each for each in best_directions(single(found)) if each.beats_both), None)
    if best is None:
        return None
    return (
        f"The surest lead: {best.name}, by head {best.head} of layer {best.layer}, is right for "
        f"{percent(best.accuracy)} of {count(best.n)} words; always taking {step(best.offset)} is right for "
        f"{percent(best.offset_accuracy)}, and the control for {percent(best.control_accuracy)}."
    )


def step(offset: int) -> str:
    """A fixed offset in words."""
    if offset == 0:
        return "the word itself"
    distance = "next" if abs(offset) == 1 else f"{_ordinal(abs(offset))}"
    side = "to the right" if offset > 0 else "to the left"
    return f"the {distance} word {side}"


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def model(probe: Probe) -> str:
    return str(probe.get("model", {}).get("name") or "this model")


def caveats(probe: Probe) -> list[str]:
    """What must be known before anything is concluded."""
    said = []
    found = relations(probe)
    few = [each for each in best_directions(single(found)) if each.beats_offset and each.n < 50]
    if few:
        said.append(
            f"{listed([f'{each.relation} (n = {each.n})' for each in few[:5]])} "
            f"{'rests' if len(few) == 1 else 'rest'} on fewer than 50 test words."
        )
    if len(found) > 20:
        said.append(
            f"With {len(found)} comparisons at 95 %, about {round(0.025 * len(found)) or 1} would seem to lead by luck "
            "alone even if none did."
        )
    importance = probe["sections"].get("importance")
    if importance and real(importance["accuracy"]) <= real(importance.get("majority", 0)) + 0.05:
        said.append(
            "The classifier is hardly better than always naming the commonest class: its heads have little to lose."
        )
    return said


def _coreference(section: Part) -> str:
    return (
        f"Head {section['head']} of layer {section['layer']}, chosen on dev texts, finds the right one of two names "
        f"for {percent(real(section['accuracy']))} of {count(section['n'])} pronouns "
        f"({_held(section, section['nearest_accuracy'], 'taking the nearer name')}."
    )


def _negation(section: Part) -> str:
    where = f"{count(section['n'])} negated words (in {count(section['sentences'])} sentences)"
    rule = f"taking {step(section['offset'])}"
    return (
        f"By head {section['head']} of layer {section['layer']}, chosen on dev sentences, "
        f"{percent(real(section['accuracy']))} of {where} attend most to the word that negates them "
        f"({_held(section, section['offset_accuracy'], rule)}."
    )


def _held(section: Part, baseline: float | None, how: str) -> str:
    """The interval, whether it lies above the baseline and the control, and both of them; closes a bracket."""
    low, other, control = real(section["low"]), real(baseline), real(section["control_accuracy"])
    shown = f"95 % interval {interval(100 * low, 100 * real(section['high']), 1)} %)"
    sure = "more often than" if low > other else "not surely more often than"
    return f"{shown}, {sure} {how}: {percent(other)}. The control reaches {percent(control)}"


def _pairs(section: Part) -> str:
    parts = []
    if binary := section.get("binary"):
        parts.append(f"Whether two words are joined is told rightly for {_probed(binary)}.")
    if named := section.get("relations"):
        parts.append(f"By which of {len(named.get('classes') or ())} relations, for {_probed(named)}.")
    return " ".join(parts)


def _probed(part: Part) -> str:
    return (
        f"{percent(real(part['accuracy']))} of {count(part['n'])} pairs, where the commonest answer alone gives "
        f"{percent(real(part['majority']))} and the control {percent(real(part['control']))}"
    )


def _speech(section: Part) -> str:
    rows = _tops(section)
    if not rows:
        return f"No head has a profile over {count(section['n'])} words."
    tag, layer, head, share, even, control = max(rows, key=lambda row: row[3] - max(row[4], row[5]))
    return (
        f"Over {count(section['n'])} words, the sharpest profile is that of head {head} of layer {layer}: "
        f"{percent(share)} of its attention goes to {tag}, where even attention would give {percent(even)} "
        f"and exchanged tags give {percent(control)}."
    )


def _importance(section: Part) -> str:
    curve = section["curve"]
    limit = real(section["accuracy"]) - 0.01
    fallen = next((place for place, point in enumerate(curve) if point["accuracy"] < limit), len(curve))
    most = curve[max(fallen - 1, 0)]
    middle = min(curve, key=lambda point: abs(point["share"] - 0.5))
    return (
        f"With all heads the accuracy on {count(section['n'])} test texts is {percent(real(section['accuracy']))}. "
        f"{_free(most)} With {percent(middle['share'], 0)} pruned it is {percent(middle['accuracy'])}, in random order "
        f"{percent(middle['random'])}, the most important first {percent(middle['reverse'])}."
    )


def _dependent(section: Part) -> str:
    """How many of the tests found more than random directions do."""
    rows = section["rows"]
    passed = sum(row["significant"] for row in rows)
    noun = "pair of a concept and a class is" if len(rows) == 1 else "pairs of a concept and a class are"
    return f"{count(passed)} of {count(len(rows))} {noun} beyond random directions."


def _concepts(section: Part) -> str:
    best = max(section["rows"], key=lambda row: abs(real(row["score"]) - real(row["random"])))
    return (
        f"At level {section['level']}, over {count(section['runs'])} runs, {_dependent(section)} The furthest from "
        f"random: towards {best['concept']}, the logit of {best['class']} rises in {percent(real(best['score']))} of "
        f"{count(best['n'])} texts, and by random directions in {percent(real(best['random']))}."
    )


def _concept_table(section: Part) -> Table:
    heads = ("concept", "class", "score", "95 % of runs", "random", "95 % of runs", "told apart", "beyond random")
    rows = [
        (
            row["concept"],
            row["class"],
            _share(row, "score"),
            _range(row),
            _share(row, "random"),
            _range(row, "random_"),
            _share(row, "accuracy"),
            "✓" if row["significant"] else "–",
        )
        for row in section["rows"]
    ]
    return grid(heads, rows)


def _concept_brief(section: Part) -> Table:
    rows = tuple(
        Row(
            (
                row["concept"],
                row["class"],
                *(number(100 * real(row[key]), 1) for key in ("score", "random", "accuracy")),
                "✓" if row["significant"] else "",
            ),
            "" if row["significant"] else "beaten",
        )
        for row in section["rows"]
    )
    return Table(columns("concept", "class", "score %", "random %", "told apart %", "", numbers=2), rows)


def _free(most: Part) -> str:
    """Up to where pruning costs next to nothing."""
    if not most["pruned"]:
        return "Pruning the least important heads costs more than one point from the first step on."
    return f"Pruning the least important {percent(most['share'], 0)} of the heads costs at most one point."


def _single(section: Part, baseline: str, title: str) -> Table:
    heads = ("head", "accuracy", "95 % interval", title, "control", "n")
    name = f"layer {section['layer']}, head {section['head']}"
    return grid(heads, [_scores(section, name, baseline, "control_accuracy")])


def _pair_table(section: Part) -> Table:
    heads = ("question", "accuracy", "95 % interval", "commonest answer", "control", "n")
    titles = {"binary": "joined or not", "relations": "which relation"}
    rows = [_scores(section[key], title, "majority", "control") for key, title in titles.items() if section.get(key)]
    return grid(heads, rows)


def _scores(part: Part, name: str, *others: str) -> tuple[str, ...]:
    """A row of a table: the accuracy with its interval, other shares, and the number of answers."""
    shares = (_share(part, key) for key in others)
    return (name, _share(part, "accuracy"), _range(part), *shares, count(part["n"]))


def _speech_table(section: Part) -> Table:
    columns = ("part of speech", "even attention", "head with the most", "its share", "with exchanged tags")
    rows = [
        (tag, percent(even), f"layer {layer}, head {head}", percent(share), percent(control))
        for tag, layer, head, share, even, control in _tops(section)
    ]
    return grid(columns, rows)


def _tops(section: Part) -> list[tuple[str, int, int, float, float, float]]:
    """For each tag: the layer and the head that give it the largest share, that share, the even one, the control."""
    shares, controls = (np.array(section[key], dtype=float) for key in ("share", "control"))
    rows = []
    for place, tag in enumerate(section["tags"]):
        share = shares[..., place] if shares.size else shares
        if not np.isnan(share).all():
            layer, head = _where(share)
            control = float(controls[layer, head, place])
            rows.append((tag, layer, head, float(share[layer, head]), real(section["uniform"][place]), control))
    return rows


def _curve_table(section: Part) -> Table:
    columns = ("pruned", "heads", "least important first", "95 % interval", "random order", "most important first")
    rows = [
        (
            percent(point["share"], 0),
            count(point["pruned"]),
            _share(point, "accuracy"),
            _range(point),
            *(_share(point, key) for key in ("random", "reverse")),
        )
        for point in section["curve"]
    ]
    return grid(columns, rows)


def _share(part: Part, key: str) -> str:
    return percent(real(part[key]))


def _range(part: Part, which: str = "") -> str:
    low, high = (100 * real(part[f"{which}{end}"]) for end in ("low", "high"))
    return f"{interval(low, high, 1)} %"


ANSWERS: dict[str, Callable[[Part], str]] = {
    "speech": _speech,
    "coreference": _coreference,
    "negation": _negation,
    "pairs": _pairs,
    "importance": _importance,
    "concepts": _concepts,
}
TABLES: dict[str, Callable[[Part], Table]] = {
    "speech": _speech_table,
    "coreference": lambda section: _single(section, "nearest_accuracy", "nearer name"),
    "negation": lambda section: _single(section, "offset_accuracy", f"offset {section['offset']:+d}".replace("-", "−")),
    "pairs": _pair_table,
    "importance": _curve_table,
    "concepts": _concept_table,
}


def origins(probe: Probe) -> tuple[tuple[str, str], ...]:
    """What is needed to make the same probe again, as pairs of a name and a text."""
    model = probe.get("model", {})
    pairs = {
        "Model": " – ".join(filter(None, (str(model.get("name") or ""), str(model.get("description") or "")))),
        "Parameters": count(int(model["parameters"])) if model.get("parameters") else "",
        "Weights": f"sha256 {model['sha256']}" if model.get("sha256") else "",
        "Made": probe.get("created") or "",
        "Took": f"{probe['seconds']:.1f} s" if probe.get("seconds") is not None else "",
        "Device": probe.get("device") or "",
        "Versions": versions(probe),
    }
    return tuple((name, str(text)) for name, text in pairs.items() if text)


# The probes of attention heads as a document: what each head attends to, against position and against chance

FIRST = 12
"""So many relations are shown before the rest, which is folded away."""
ROOM = 24_000
"""Of more cells than this the numbers stand in probe.json alone: a page must stay small enough to be sent."""


def document(probe: Probe) -> Document:
    """The whole page: relations with their best heads, squares of all heads, drawn heads, other sections, limits."""
    about = "Heads of" if probe["heads"] else "Concepts in"
    title = f"{about} {model(probe)}"
    return page_of(probe, title, f"{about.lower()} {model(probe)}", _sections(probe), skip="Skip to the verdict")


def brief(probe: Probe) -> tuple[Block, ...]:
    """What a terminal shows: the headline, each relation in the direction in which its head leads most, the rest."""
    found = best_directions(relations(probe))
    reasons: dict[str, list[str]] = {}
    for name, reason in (probe.get("left_out") or {}).items():
        reasons.setdefault(str(reason), []).append(NAMES.get(name, name))
    notes = [Prose(f"Not probed: {listed(names)}. {reason}", "soft") for reason, names in reasons.items()]
    heads = ("relation", "to", "head", "right %", "95 %", "offset", "control", "n", "")
    rows = tuple(Row(_short(each), "" if each.beats_both else "beaten") for each in found)
    concepts = probe["sections"].get("concepts")
    return some(
        Headline(headline(probe)),
        Table(columns(*heads, numbers=3), rows) if rows else None,
        _concept_brief(concepts) if concepts else None,
        notes,
    )


def _short(found: Relation) -> tuple[str, ...]:
    return (
        found.title,
        found.direction.removeprefix("to "),
        f"{found.layer}-{found.head}",
        number(100 * found.accuracy, 1),
        interval(100 * found.low, 100 * found.high, 0),
        f"{number(100 * found.offset_accuracy, 1)} ({found.offset:+d})".replace("-", "−"),
        number(100 * found.control_accuracy, 1),
        count(found.n),
        "✓" if found.beats_both else "",
    )


def _sections(probe: Probe) -> Iterator[Section]:
    found = relations(probe)
    yield Section("verdict", "", _verdict(probe, found), "Verdict")
    if found:
        yield Section("squares", "Every layer and head, relation by relation", _squares(found), "Layers and heads")
    if drawn := [_drawn(example, place == 0) for place, example in enumerate(probe.get("examples") or ())]:
        yield Section("drawn", "Heads drawn", (Prose(READINGS["drawn"], "reading"), *drawn), "Heads drawn")
    for name, title in TITLES.items():
        if section := probe["sections"].get(name):
            yield Section(name, title, tuple(_part(name, section)), NAMES[name].capitalize())
    left = tuple((NAMES.get(name, name), str(reason)) for name, reason in (probe.get("left_out") or {}).items())
    limits = some(
        tuple(map(Prose, LIMITS)),
        (Heading("Not probed"), Pairs(left, "left-out")) if left else None,
        Heading("Papers"),
        Bullets(PAPERS, "papers", True),
    )
    yield Section("limits", "Limits, and where this comes from", limits, "Limits")
    yield provenance(probe, "probe.json", origins(probe))


def _verdict(probe: Probe, found: Sequence[Relation]) -> tuple[Block, ...]:
    lead, colon, because = headline(probe).partition(": ")
    surest = leading(found)
    top = some(
        Headline(
            f"{lead}{colon.strip()}",
            because,
            f"{probe['layers']} layers of {probe['heads']} heads: {model(probe)}" if probe["heads"] else model(probe),
        ),
        Prose(surest, "tally") if surest else None,
        [Prose(each, "caveat") for each in caveats(probe)],
    )
    if not found:
        return top
    rest = f"{len(found) - FIRST} more rows, by how surely they lead over the fixed offset"
    return some(
        top,
        Heading("Relations and their best heads", 2, "relations"),
        _key(),
        _relations(found[:FIRST]),
        Fold(rest, (_relations(found[FIRST:]),)) if len(found) > FIRST else None,
        Prose(READINGS["relations"], "reading"),
    )


def _key() -> Group:
    best = '<line class="interval" x1="6" x2="34" y1="10" y2="10"/><circle class="found" cx="20" cy="10" r="4.5"/>'
    offset = '<line class="offset" x1="6" x2="6" y1="2" y2="18"/>'
    control = '<path class="control" d="M3.5 6.5l7 7m0 -7l-7 7"/>'
    signs = (
        Figure(drawings.sample(best), "best head, 95 % interval"),
        Figure(drawings.sample(offset, 12), "best fixed offset"),
        Figure(drawings.sample(control, 14), "random control"),
    )
    return Group((*signs, Prose((Span("✓", "mark"), " beats both beyond its interval"))), "key")


def _relations(found: Sequence[Relation]) -> Table:
    heads = (
        Column("relation and direction"),
        Column("layer-head", number=True),
        Column("0 to 100 %", role="drawn", wide=True),
        *columns("accuracy", "95 % interval", "offset", "control", "n", numbers=0),
        Column("beats both", role="mark"),
    )
    return Table(heads, tuple(map(_relation, found)), layout="stack", role="relations")


def _relation(found: Relation) -> Row:
    offset = f"offset {found.offset:+d}".replace("-", "−")
    mark = Cell(Span("✓", "mark"), title="beats the fixed offset and the control") if found.beats_both else "–"
    cells = (
        (f"{found.title} ", Span(found.direction, "soft")),
        f"{found.layer}-{found.head}",
        Cell(drawing=drawings.bar(found)),
        percent(found.accuracy),
        interval(100 * found.low, 100 * found.high, 1),
        Cell(percent(found.offset_accuracy), title=step(found.offset), label=offset),
        percent(found.control_accuracy),
        count(found.n),
        mark,
    )
    return Row(cells, "" if found.beats_both else "beaten")


def _squares(found: Sequence[Relation]) -> tuple[Block, ...]:
    made = []
    for each in found:
        label = f"Test accuracy of every head for {each.name}; chosen: layer {each.layer}, head {each.head}"
        drawing = drawings.square(each.every, label, ringed=(each.layer, each.head))
        made.append(_square(each.name, drawing, f"layer {each.layer}, head {each.head}: {percent(each.accuracy)}"))
    numbers: Block = Prose(
        ("There are too many numbers for a page; they stand in ", Span("probe.json", "code"), "."), "soft"
    )
    if sum(len(row) for each in found for row in each.every) <= ROOM:
        tables = tuple(Fold(each.name, (_numbers(each.name, each.every),)) for each in found)
        numbers = Fold("The same as numbers: choose a relation", tables)
    rest = Fold(f"{len(made) - FIRST} more squares", (Group(tuple(made[FIRST:]), "cells"),))
    return some(
        Prose(READINGS["squares"], "reading"),
        Group((Figure(drawings.shades("p"), "100 %", "0 %"),), "key"),
        Group(tuple(made[:FIRST]), "cells"),
        rest if len(made) > FIRST else None,
        numbers,
    )


def _square(title: str, drawing: str, caption: str) -> Figure:
    return Figure(drawing, (Span(title, "above"), f" {caption}"))


def _numbers(title: str, values: Cells, shade: Shade = Shade()) -> Table:  # noqa: B008
    """Layers and heads as a table of shaded numbers."""
    rows = tuple(Row((f"layer {layer}", *(_number(value, shade) for value in row))) for layer, row in enumerate(values))
    heads = columns("", *map(str, range(len(values[0]))), numbers=99)
    caption = Span(title), ", layers by heads, in hundredths."
    return Table(heads, rows, title, "dense", caption=caption)


def _number(value: float | None, shade: Shade) -> Cell:
    found = real(value)
    return Cell("–" if math.isnan(found) else number(100 * found, 0), level=shade.level(found))


def _drawn(example: Part, first: bool) -> Fold:
    """A sentence under some heads."""
    text = " ".join(example["words"])
    heads = tuple(_head(example, head) for head in example["heads"])
    summary = Span(text, "opening"), " ", Span(f"{len(heads)} heads", "outcome")
    return Fold(summary, (Group(heads, "heads body"),), first, "example")


def _head(example: Part, head: Part) -> Figure:
    title = f"{head['title']} (layer {head['layer']}, head {head['head']})"
    words, weights = example["words"], head["weights"]
    asked = drawings.answers(example, str(head["title"]))
    label = f"Attention of {title} between the words of: {' '.join(words)}"
    strong = any(drawings.known_weight(weight) >= FAINT for row in weights for weight in row)
    heads = columns("word", "attends most to", "weight", "governor", "relation", numbers=9)
    rows = tuple(Row(_line(example, weights, asked, place)) for place in range(len(words)))
    blocks = some(
        None if strong else Prose("No weight between two words is large enough to be drawn.", "soft"),
        Fold("As a table", (Table(heads, rows, title),)),
    )
    return Figure(drawings.lines(words, weights, asked, label), title=title, blocks=blocks)


def _line(example: Part, weights: Cells, asked: Answers, place: int) -> tuple[Words, ...]:
    """A word of a drawn sentence: what it attends to most, how much, whether that is right, and its governor."""
    words, governor = example["words"], example["governors"][place]
    most = drawings.strongest(weights, place)
    mark = ("✓" if drawings.hit(asked, weights, place) else "✗") if place in asked else ""
    return (
        Span(words[place], "name"),
        (Span("–" if most is None else words[most], "name"), f" {mark}"),
        "–" if most is None else percent(real(weights[place][most]), 0),
        Span("root" if governor < 0 else words[governor], "name"),
        str(example["relations"][place]),
    )


def _part(name: str, section: Part) -> Iterator[Block]:
    """A section below those of the relations."""
    yield Prose(ANSWERS[name](section), "answer")
    yield Prose(READINGS[name], "reading")
    squares = tuple(_section_squares(name, section))
    if name == "speech":
        signs = (
            Figure(drawings.shades("n"), "as even attention", "a fourth"),
            Figure(drawings.shades("p"), "four times"),
        )
        yield Group(signs, "key")
    if name == "importance":
        shown = Group(squares, "cells")
        curve = Figure(Chart("pruning", section))
        yield Group((curve, shown), "figures") if len(section.get("curve") or ()) > 1 else shown
    elif squares:
        yield Group(squares, "cells broad" if name == "speech" else "cells")
    if name in TABLES:
        yield TABLES[name](section)
    if numbers := _section_numbers(name, section):
        yield Fold("Every layer and head as numbers", (numbers,))


def _section_squares(name: str, section: Part) -> Iterator[Figure]:
    if name == "speech":
        for layer, heads in enumerate(section["share"]):
            label = f"Profiles of the heads of layer {layer} over parts of speech"
            yield _square(f"layer {layer}", drawings.profile(heads, section["uniform"], section["tags"], label), "")
    elif name == "importance":
        where = _where(section["importance"])
        shade = Shade(0.0, real(section["importance"][where[0]][where[1]]))
        drawing = drawings.square(section["importance"], "Importance of every head", shade, where)
        yield _square("importance", drawing, f"The darkest is the largest; ring: layer {where[0]}, head {where[1]}")
    elif name in ("coreference", "negation"):
        chosen = section["layer"], section["head"]
        drawing = drawings.square(section["every"], f"Test accuracy of every head for {name}", ringed=chosen)
        yield _square("accuracy", drawing, f"layer {chosen[0]}, head {chosen[1]}: {percent(real(section['accuracy']))}")
        if section.get("confusion"):
            yield _confusion(section["confusion"], section.get("best_confusion"))


def _confusion(values: Cells, best: float | None) -> Figure:
    """Cross-entropies turned round: dark is low, and low is good."""
    found = np.array(values, dtype=float)
    known = found[~np.isnan(found)]
    least, most = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    drawing = drawings.square((most - found).tolist(), "Confusion of every head", Shade(0.0, most - least))
    caption = f"from {number(least, 2)} (darkest) to {number(most, 2)}; lowest on dev texts: {number(real(best), 2)}"
    return _square("confusion", drawing, caption)


def _section_numbers(name: str, section: Part) -> Table | None:
    if name == "importance":
        layer, head = _where(section["importance"])
        return _numbers("importance × 100", section["importance"], Shade(0.0, real(section["importance"][layer][head])))
    return _numbers("accuracy in %", section["every"]) if "every" in section else None


def _where(values: Cells | np.ndarray) -> tuple[int, int]:
    """The layer and the head of the largest number."""
    found = np.array(values, dtype=float)
    layer, head = np.unravel_index(np.where(np.isnan(found), -np.inf, found).argmax(), found.shape)
    return int(layer), int(head)

"""What the page on attention heads says: the headline, what each section found, how to read it, limits, papers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from assay.document import Table, grid, versions
from assay.probes.stored import Probe, Relation, best_directions, real, relations, single
from assay.writing import count, interval, listed, percent

Part = dict[str, Any]

NAMES = {
    "relations": "dependency relations",
    "speech": "parts of speech",
    "coreference": "coreference",
    "negation": "negation",
    "pairs": "pairs of words",
    "importance": "head importance",
}
"""What each section is about."""

TITLES = {
    "speech": "Which kinds of words do heads look at?",
    "coreference": "Do heads find what a pronoun stands for?",
    "negation": "Do heads link words to the negation over them?",
    "pairs": "What do all heads together tell about two words?",
    "importance": "Which heads does the classifier need?",
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
)


def headline(probe: Probe) -> str:
    """One sentence, with a colon between what was found and why."""
    found = single(relations(probe))
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


def _free(most: Part) -> str:
    """Up to where pruning costs next to nothing."""
    if not most["pruned"]:
        return "Pruning the least important heads costs more than one point from the first step on."
    return f"Pruning the least important {percent(most['share'], 0)} of the heads costs at most one point."


def _single(section: Part, baseline: str, title: str) -> Table:
    columns = ("head", "accuracy", "95 % interval", title, "control", "n")
    name = f"layer {section['layer']}, head {section['head']}"
    row = (
        name,
        percent(real(section["accuracy"])),
        _range(section),
        percent(real(section[baseline])),
        percent(real(section["control_accuracy"])),
        count(section["n"]),
    )
    return grid(columns, [row])


def _pair_table(section: Part) -> Table:
    columns = ("question", "accuracy", "95 % interval", "commonest answer", "control", "n")
    titles = {"binary": "joined or not", "relations": "which relation"}
    rows = [
        (
            titles[key],
            percent(real(part["accuracy"])),
            _range(part),
            percent(real(part["majority"])),
            percent(real(part["control"])),
            count(part["n"]),
        )
        for key in titles
        if (part := section.get(key))
    ]
    return grid(columns, rows)


def _speech_table(section: Part) -> Table:
    columns = ("part of speech", "even attention", "head with the most", "its share", "with exchanged tags")
    rows = [
        (tag, percent(even), f"layer {layer}, head {head}", percent(share), percent(control))
        for tag, layer, head, share, even, control in _tops(section)
    ]
    return grid(columns, rows)


def _tops(section: Part) -> list[tuple[str, int, int, float, float, float]]:
    """For each tag: the layer and the head that give it the largest share, that share, the even one, the control."""
    rows = []
    for place, tag in enumerate(section["tags"]):
        shares = {
            (layer, head): real(tags[place])
            for layer, heads in enumerate(section["share"])
            for head, tags in enumerate(heads)
        }
        known = {where: share for where, share in shares.items() if share == share}
        if known:
            layer, head = max(known, key=lambda where: known[where])
            control = real(section["control"][layer][head][place])
            rows.append((tag, layer, head, known[layer, head], real(section["uniform"][place]), control))
    return rows


def _curve_table(section: Part) -> Table:
    columns = ("pruned", "heads", "least important first", "95 % interval", "random order", "most important first")
    rows = [
        (
            percent(point["share"], 0),
            count(point["pruned"]),
            percent(point["accuracy"]),
            _range(point),
            percent(point["random"]),
            percent(point["reverse"]),
        )
        for point in section["curve"]
    ]
    return grid(columns, rows)


def _range(part: Part) -> str:
    return f"{interval(100 * real(part['low']), 100 * real(part['high']), 1)} %"


ANSWERS: dict[str, Callable[[Part], str]] = {
    "speech": _speech,
    "coreference": _coreference,
    "negation": _negation,
    "pairs": _pairs,
    "importance": _importance,
}
TABLES: dict[str, Callable[[Part], Table]] = {
    "speech": _speech_table,
    "coreference": lambda section: _single(section, "nearest_accuracy", "nearer name"),
    "negation": lambda section: _single(section, "offset_accuracy", f"offset {section['offset']:+d}".replace("-", "−")),
    "pairs": _pair_table,
    "importance": _curve_table,
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

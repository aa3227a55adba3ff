"""How a model explains its answers in sentences and what these are worth, as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assay.document import (
    Block,
    Bullets,
    Document,
    Group,
    Headline,
    Passage,
    Prose,
    Section,
    Span,
    page_of,
    provenance,
    some,
    versions,
)
from assay.rationales.selection_page import INTRO, LONGEST, measure_grid, measure_table, outcome
from assay.stories import Story, filled
from assay.writing import count, figures, number, percent

Answer = Mapping[str, Any]


def document(answer: Answer) -> Document:
    """The whole page: the finding, the measures, texts to look at, limits, provenance."""
    told = story(answer)
    measured = measure_table(told, answer["measures"], lambda name: meaning(answer, name))
    texts = some(Prose("The texts were drawn by the seed.", "soft"), map(_example, answer["examples"]))
    sections = (
        Section("verdict", "", _verdict(answer), "Finding"),
        Section("measures", "What the explanations are worth", (Prose(INTRO), measured), "Measures"),
        Section("texts", "Explanations to look at", texts, "Texts"),
        Section("limits", "Limits", tuple(map(Prose, told.reading.split("\n\n"))), "Limits"),
        provenance(answer, "sentences.json", _facts(answer), ", with all answers and explanations"),
    )
    return page_of(answer, f"Answers with explanations: {answer['corpus']['name']}", "why it answers so", sections)


def brief(answer: Answer) -> tuple[Block, ...]:
    """What a terminal shows: the finding, and the measures."""
    return Headline(f"{headline(answer)}."), measure_grid(story(answer), answer["measures"])


def story(answer: Answer) -> Story:
    return Story.of(answer["recipe"]["story"])


def headline(answer: Answer) -> str:
    """The main finding: how often it is right, and whether its explanations matter."""
    accuracy, own, others = (answer["measures"][name]["mean"] for name in ("accuracy", "own", "others"))
    return (
        f"The model answers {percent(accuracy)} of the test texts right and says why: {_decider(answer)} finds the "
        f"right label in {percent(own)}, and in {percent(others)} where explanations are exchanged among texts"
    )


def meaning(answer: Answer, name: str) -> str:
    """What a measure means here."""
    leaked, sealed = answer["strata"]
    words = {"decider": _decider(answer), "leaked": count(leaked), "both": count(leaked + sealed)}
    return filled(story(answer).measure(name).help, **words)


def _decider(answer: Answer) -> str:
    return (
        "the scorer of explanations"
        if answer["recipe"]["name"] == "label_specific"
        else "a reader of explanations alone"
    )


def _verdict(answer: Answer) -> tuple[Block, ...]:
    lead, _, because = headline(answer).partition(": ")
    kicker = f"{count(answer['corpus']['measured'])} test texts of ", Span(answer["corpus"]["name"], "name")
    return some(
        Headline(f"{lead}:", f"{because}.", (*kicker, f", recipe {answer['recipe']['name']}")),
        [Prose(each, "caveat") for each in caveats(answer)],
    )


def caveats(answer: Answer) -> Iterator[str]:
    """What a reader must know before the numbers."""
    measures, guess = answer["measures"], answer["corpus"]["majority"]
    if measures["accuracy"]["low"] <= guess:
        yield (
            "The model is not clearly better than always naming the most frequent class, which is right in "
            f"{percent(guess)}: its explanations explain next to nothing."
        )
    if measures["others"]["low"] > guess:
        yield (
            f"Explanations of other texts are enough to be right in {percent(measures['others']['mean'])}, where a "
            f"guess is in {percent(guess)}: the label does not rest on what is explained."
        )
    if not all(answer["strata"]):
        which = "does not give" if answer["strata"][0] == 0 else "gives"
        yield f"Every explanation {which} the answer away by itself; simulatability is a mean over these alone."


def _example(example: Answer) -> Group:
    blocks: list[Block] = [outcome(example)]
    for title, text in zip(example["parts"], (example["text"], example["query"]), strict=True):
        blocks.append(Group((Prose(title, "name"), Passage(text, (), (), (), LONGEST, True)), "query"))
    blocks.append(Prose(("because ", Span(example["explanation"], "name"))))
    if example["people"]:
        items = tuple((Span(each, "soft"),) for each in example["people"])
        blocks.append(Bullets(items, "said", True, "What people wrote"))
    return Group(tuple(blocks), "text")


def _facts(answer: Answer) -> Iterator[tuple[str, str]]:
    """Where the numbers come from."""
    model, corpus, recipe = answer["model"], answer["corpus"], answer["recipe"]
    yield "Recipe", f"{recipe['name']}: {story(answer).question}"
    yield "Model", f"pointer–generator, {count(model['parameters'])} parameters, beam of {count(model['beams'])}"
    yield "Training texts", f"{count(corpus['train'])} of {corpus['name']}; {count(corpus['labelled'])} with labels"
    yield "Test texts", f"{count(corpus['measured'])} of {count(corpus['test'])}"
    yield "Training", f"{count(model['epochs'])} epochs, the best was number {count(model['best_epoch'])}"
    for name, label in (("bleu", "BLEU against people's"), ("chrf", "chrF against people's")):
        if name in answer["pooled"]:
            yield label, number(answer["pooled"][name], 1)
    yield "Device", answer["device"]
    yield "Seconds", figures(answer["seconds"])
    yield "Versions", versions(answer)

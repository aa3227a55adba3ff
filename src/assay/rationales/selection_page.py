"""What a model selects of its texts and what that is worth, as a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from assay.document import (
    Bar,
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    Group,
    Heading,
    Headline,
    Passage,
    Prose,
    Row,
    Section,
    Span,
    Table,
    grid,
    page_of,
    provenance,
    some,
    versions,
)
from assay.rationales.selection_stories import rule, story
from assay.stories import Story, filled
from assay.writing import count, figures, interval, number, percent

Answer = Mapping[str, Any]

INTRO = "Means over test texts with 95 % intervals; the line on a bar is the interval."
LONGEST = 150  # words of a text that are shown
SAID = 3  # classes that are named with a pair


UNITS = {
    "token": "words",
    "span": "stretches of {width} words",
    "sentence": "sentences",
    "phrase": "phrases, which end with a punctuation mark or after {width} words,",
}
READINGS = {
    "delete": "is left out, and the rest moves together",
    "zero": "gives way to an embedding of zeros",
    "mask": "gives way to the mask",
    "pad": "gives way to padding",
    "mean": "gives way to the mean embedding",
    "learnt": "gives way to an embedding that was learnt for it",
}
LIMITS = (
    "That a selection agrees with the marks of people makes it plausible; it is not what makes it true to the model.",
    "Training has luck in it. Another seed can select other words with the same accuracy.",
)


def document(answer: Answer) -> Document:
    """The whole page: the finding, the measures, texts to look at, limits, provenance."""
    measured = measure_table(story(answer), answer["measures"], lambda name: meaning(answer, name))
    sections = (
        Section("verdict", "", _verdict(answer), "Finding"),
        Section("measures", "What the selection is worth", (Prose(INTRO), measured), "Measures"),
        Section("texts", "Texts to look at", tuple(_texts(answer)), "Texts"),
        Section("limits", "Limits", tuple(map(Prose, limits(answer))), "Limits"),
        provenance(answer, "rationales.json", facts(answer), ", with what was selected of every test text"),
    )
    return page_of(answer, f"What a model selects of {answer['corpus']['name']}", "what a model selects", sections)


def brief(answer: Answer) -> tuple[Block, ...]:
    """What a terminal shows: the finding, and the measures."""
    return Headline(f"{headline(answer)}."), measure_grid(story(answer), answer["measures"])


def _verdict(answer: Answer) -> tuple[Block, ...]:
    lead, colon, because = headline(answer).partition(": ")
    kicker = f"{count(answer['corpus']['measured'])} test texts of ", Span(answer["corpus"]["name"], "name")
    return some(
        Headline(f"{lead}{colon.strip()}", f"{because}.", (*kicker, f", recipe {answer['recipe']['name']}")),
        [Prose(each, "caveat") for each in caveats(answer)],
        Prose((Span("How words are selected."), f" {selecting(answer)}")),
    )


def measure_table(told: Story, measures: Mapping[str, Any], meaning: Callable[[str], str]) -> Table:
    """Each measure with its interval, a bar, and what it means."""
    columns = (
        Column("measure"),
        Column("mean", number=True, role="mean"),
        Column("95 % interval", number=True),
        Column("0 to 1", role="bar", wide=True),
        Column("what it means", role="meaning", wide=True),
    )
    rows = []
    for name, found in measures.items():
        measure = told.measure(name)
        mean, low, high = (min(1.0, max(0.0, found[end])) for end in ("mean", "low", "high"))
        good = measure.caution or measure.better
        cells = (
            measure.label,
            number(found["mean"]),
            Cell(interval(found["low"], found["high"]), (f"{count(found['n'])} texts",)),
            Cell(drawing=Bar(mean, (low, high))),
            (f"{meaning(name)} ", Span(f"Good: {good}.", "soft")) if good else meaning(name),
        )
        rows.append(Row(cells))
    return Table(columns, tuple(rows), layout="stack", role="measured")


def measure_grid(told: Story, measures: Mapping[str, Any]) -> Table:
    """The same for a terminal."""
    rows = [
        (told.measure(name).label, number(each["mean"]), interval(each["low"], each["high"]), count(each["n"]))
        for name, each in measures.items()
    ]
    return grid(("measure", "mean", "95 % interval", "texts"), rows)


def _texts(answer: Answer) -> Iterator[Block]:
    """Texts that were decided right and texts that were not, each with what was selected."""
    yield Prose(tuple(_legend(answer)), "legend")
    right = [each for each in answer["examples"] if each["predicted"] == each["label"]]
    wrong = [each for each in answer["examples"] if each["predicted"] != each["label"]]
    groups = (
        ("Decided right", "Does the selection hold what decides?", right),
        ("Decided wrong", "What misled the model is among the selected words, or was not selected.", wrong),
    )
    for title, sentence, examples in groups:
        if examples:
            yield Heading(title)
            yield Prose(sentence, "soft")
            yield from (Group(tuple(_example(each, answer["classes"])), "text") for each in examples)


def _legend(answer: Answer) -> Iterator[str | Span]:
    yield from (Span("On colour", "selected"), ": selected.")
    if answer["corpus"]["marked"]:
        how = "decides by construction" if answer["corpus"]["planted"] else "marked by people"
        yield from (" ", Span("Underlined", "marked"), f": {how}. ", Span("Both", "both"), ": a hit.")
    if any("pairs" in each for each in answer["examples"]):
        yield from (" Words with the same ", Span("number", "nth"), " are aligned; below stands what each pair says ")
        yield "for the classes, in logits above their mean, the answer first."
    elif "parts" in answer:
        yield " Numbers say how much a part speaks for the answer, in logits above the mean of all classes."
    yield " The texts were drawn by the seed."


def _example(example: Answer, classes: Sequence[str]) -> Iterator[Block]:
    yield outcome(example, f"{example['probability']:.2f} ")
    if example["query"]:
        yield Group((Prose("question or hypothesis", "name"), _query(example)), "query")
    yield passage(example, example["text"], "word", example)
    if "pairs" in example:
        yield _pairs(example, classes)
    if "account" in example:
        yield _account(example["account"])


def outcome(example: Answer, more: str = "") -> Prose:
    """The decided class, and whether it is the one of the label."""
    said: tuple[str | Span, ...] = (Span("✓", "hidden"), " ", Span("right", "right"))
    if example["predicted"] != example["label"]:
        said = Span("✗", "hidden"), " ", Span("labelled ", "wrong"), Span(example["label"], "name")
    return Prose((Span(example["predicted"], "called"), f" {more}", *said), "outcome")


def passage(words: Answer, text: str, side: str, example: Answer) -> Passage:
    """A text with what was selected and marked in it; aligned words have the number of their pair."""
    numbers: dict[int, str] = {}
    for place, pair in enumerate(example.get("pairs") or (), start=1):
        numbers[pair[side]] = ", ".join(filter(None, (numbers.get(pair[side]), str(place))))
    flags = [float(flag) for flag in words["kept"]]
    return Passage(text, words["starts"], words["ends"], flags, LONGEST, True, words["marked"], numbers)


def _query(example: Answer) -> Passage:
    if "asked" not in example:
        return Passage(example["query"], (), (), (), LONGEST, True)
    return passage(example["asked"], example["query"], "asked", example)


def _pairs(example: Answer, classes: Sequence[str]) -> Block:
    if not example["pairs"]:
        return Prose("No word is aligned: the class is the one that is likeliest beforehand.", "soft none")
    items = []
    for pair in example["pairs"]:
        found: list[str | Span] = [
            Span(_word(example, example["text"], pair["word"]), "name"),
            *(" ", Span("↔", "hidden"), Span(" with ", "heard"), " "),
            Span(_word(example["asked"], example["query"], pair["asked"]), "name"),
        ]
        for name, vote in votes(pair, example["predicted"], classes):
            found += [" ", Span(f"{name} {_signed(vote)}", "vote own" if name == example["predicted"] else "vote")]
        items.append(tuple(found))
    return Bullets(tuple(items), "pairs", True, "Aligned words, of the text and of the question or hypothesis")


def votes(pair: Answer, predicted: str, classes: Sequence[str]) -> list[tuple[str, float]]:
    """What an aligned pair says: for the answer first, then for the other classes, the strongest of many."""
    said = dict(zip(classes, pair["votes"], strict=True))
    others = sorted((name for name in classes if name != predicted), key=lambda name: -abs(said[name]))[: SAID - 1]
    return [(name, said[name]) for name in (predicted, *others)]


def _account(account: Answer) -> Group:
    """What the phrases of a text, stored phrases and the whole text say for the answer."""
    blocks: list[Block] = []
    for title, name in (("Its phrases", "phrases"), ("Training phrases nearest to it", "stored")):
        lead = Prose((f"{title}: together ", Span(_signed(account["parts"][name]), "by")), "soft")
        items = tuple((Span(_signed(each["by"]), "by"), " ", Span(each["text"], "name")) for each in account[name])
        blocks.append(Group((lead, Bullets(items, "said", True)), "of"))
    return Group((*blocks, Prose(f"The whole text: {_signed(account['parts']['whole'])}", "soft")), "account")


def _word(words: Answer, text: str, index: int) -> str:
    return text[words["starts"][index] : words["ends"][index]]


def _signed(value: float) -> str:
    """What speaks for something with a plus, what speaks against it with a minus; small numbers have two digits too."""
    if not round(value, 4):
        return "0"
    digits = 2 if abs(value) >= 0.1 else 3 if abs(value) >= 0.01 else 4
    return f"{value:+.{digits}f}".replace("-", "\u2212")


def headline(answer: Answer) -> str:
    """The main finding: what was read and how often that was enough, then what it is worth."""
    accuracy, size = (answer["measures"][name]["mean"] for name in ("accuracy", "size"))
    if answer["reads"] == "all":
        lead = (
            f"The model decides {percent(accuracy)} of the test texts right, and {percent(size)} of the words are "
            "selected to explain that"
        )
    else:
        lead = f"The model reads {percent(size)} of the words and decides {percent(accuracy)} of the test texts right"
    return f"{lead}: {'; '.join(_findings(answer))}"


def _findings(answer: Answer) -> list[str]:
    measures = answer["measures"]
    found = []
    if "token_f1" in measures:
        found.append(
            f"the selection meets {_marked(answer)} with a token F1 of {number(measures['token_f1']['mean'], 2)}"
        )
    rest = measures["complement_accuracy"]
    guess = answer["corpus"]["majority"]
    nothing = guess is not None and rest["low"] <= guess
    much = " – no better than a guess" if nothing else f", where a guess is right in {percent(guess)}"
    found.append(f"what was not selected is enough to be right in {percent(rest['mean'])}{much}")
    return found


def meaning(answer: Answer, name: str) -> str:
    """What a measure means here."""
    told = story(answer)
    predictor = told.words.get("predictor", "the predictor")
    reader = "the critic, which was trained for it," if answer["critic"] else predictor
    guess = percent(answer["corpus"]["majority"])
    words = {"marked": _marked(answer), "predictor": predictor, "reader": reader, "majority": guess}
    return filled(told.measure(name).help, **words)


def selecting(answer: Answer) -> str:
    """By which rule words are selected, without which no number of the page means anything."""
    how = answer["selecting"]
    units, share = UNITS[how["units"]["kind"]].format(width=how["units"]["width"]), percent(how.get("rate"))
    said = filled(rule(answer), units=units, share=share)
    several = f", for each of {count(how['masks'])} masks" if how["masks"] > 1 else ""
    return (
        f"Nothing is drawn by chance here: selected are {said}{several}. What is not selected "
        f"{READINGS[how['reading']]}. Under another rule every number of this page would be another."
    )


def limits(answer: Answer) -> tuple[str, ...]:
    """What the page cannot tell."""
    reading = story(answer).reading
    return *filter(None, reading.split("\n\n")), *LIMITS


def caveats(answer: Answer) -> list[str]:
    """What a reader must know before the numbers."""
    found = list(answer.get("collapse") or ())
    accuracy, guess = answer["measures"]["accuracy"], answer["corpus"]["majority"]
    if guess is not None and accuracy["low"] <= guess:
        found.append(
            f"The model is not clearly better than always naming the most frequent class, which is right in "
            f"{percent(guess)}: what it selects explains next to nothing."
        )
    if (parts := answer.get("parts")) is not None:
        found.append(
            f"The model reads all words. Of what speaks for its answers or against them, its phrases say "
            f"{percent(parts['phrases'])}, the stored phrases {percent(parts['stored'])}, and the rest is said by the "
            "text as a whole, which is not explained."
        )
    elif answer["reads"] == "all":
        found.append("The model reads all words; the selection was learnt afterwards, to explain it.")
    left_out = sum(answer["corpus"]["skipped"].values())
    if left_out:
        reasons = ", ".join(f"{count(many)} with {reason}" for reason, many in answer["corpus"]["skipped"].items())
        found.append(f"{count(left_out)} test texts are left out: {reasons}.")
    return found


def facts(answer: Answer) -> list[tuple[str, str]]:
    """Where the numbers come from."""
    model, corpus, recipe = answer["model"], answer["corpus"], answer["recipe"]
    found = [
        ("Recipe", f"{recipe['name']}: {recipe['meaning']}"),
        ("Model", f"{model['description']}; {count(model['parameters'])} parameters"),
        ("Training texts", f"{count(corpus['train'])} of {corpus['name']}"),
        ("Test texts", f"{count(corpus['measured'])} of {count(corpus['test'])}, {count(corpus['marked'])} with marks"),
        ("Training", f"{count(model['epochs'])} epochs, the best was number {count(model['best_epoch'])}"),
        ("Macro F1 of decisions", number(answer["pooled"]["macro_f1"])),
    ]
    if (pooled := answer["pooled"].get("iou_f1_eraser")) is not None:
        found.append(("IOU F1 as ERASER pools it", f"{number(pooled)}: that of mean precision and mean recall"))
    found += [
        ("Weights (sha256)", model["sha256"]),
        ("Device", answer["device"]),
        ("Seconds", figures(answer["seconds"])),
        ("Versions", versions(answer)),
    ]
    return found


def _marked(answer: Answer) -> str:
    planted = answer["corpus"]["planted"]
    return "the words that decide by construction" if planted else "the words that people marked"

"""The sentences of the page on selections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.writing import count, figures, number, percent

Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Measure:
    """A title, what the number means, and where it should be."""

    title: str
    meaning: str
    good: str


MEASURES = {
    "accuracy": Measure("accuracy", "Decisions that are right.", "high"),
    "size": Measure("size", "Words of a text that are selected, as a share.", "as small as the decision allows"),
    "token_f1": Measure("token F1", "How far the selected words are {marked}: 1 is all of them and no others.", "high"),
    "query_f1": Measure(
        "query token F1",
        "The same for the words of the question or hypothesis that are aligned with any of the text.",
        "high",
    ),
    "iou_f1": Measure(
        "IOU F1",
        "The same for stretches of words: a selected one is a hit if it shares at least half of what both cover with a "
        "stretch of {marked}.",
        "high",
    ),
    "auprc": Measure(
        "AUPRC",
        "How well the order of all words, the selected first and then by their chances, puts {marked} before others: "
        "the area under precision and recall.",
        "high",
    ),
    "comprehensiveness": Measure(
        "comprehensiveness",
        "How much less probable the decided class is to {predictor} when the selected words are taken from a text.",
        "high",
    ),
    "sufficiency": Measure(
        "sufficiency",
        "How much less probable it is when nothing but the selected words is left.",
        "near 0 or below",
    ),
    "complement_accuracy": Measure(
        "complement accuracy",
        "Decisions that are right when {reader} sees only what was not selected; always naming the most frequent class "
        "would be right in {majority}.",
        "low: then the rest says little",
    ),
}
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
    "Comprehensiveness and sufficiency compare three answers of the predictor to the class that the model decided for: "
    "to all words, to the selected ones, and to the rest. Many recipes never show whole texts to the predictor, so its "
    "answer to all words may be one to something it has not learnt from.",
    "A selection tells what the predictor read. It does not tell why these words were selected: the selector sees the "
    "whole text, and can put a message into the pattern of words that it lets through.",
    "That a selection agrees with the marks of people makes it plausible; it is not what makes it true to the model.",
    "Training has luck in it. Another seed can select other words with the same accuracy.",
)
OWN_LIMITS = {
    "aligned": (
        "Comprehensiveness and sufficiency compare three answers of the model to the class that it decided for: to all "
        "words of a text, to the aligned ones, and to the rest. The question or hypothesis stays whole each time, and "
        "words are aligned anew.",
        "What the aligned pairs say is added up, and nothing else decides but how likely each class is beforehand. "
        "Which pairs are aligned was found by comparing all of them, and that is not explained.",
    ),
    "telling": (
        "Comprehensiveness and sufficiency compare three answers of the model to the class that it decided for: to all "
        "words, to those of the selected phrases, and to the rest.",
        "The answer is the sum of what the whole text, its phrases and stored training phrases say. What the whole "
        "text says is not divided among its words, so the phrases explain no more of the answer than their own part.",
    ),
}
"""In place of the first two, where no game was played."""


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
    predictor = "the model" if answer["selecting"]["rule"] in OWN_LIMITS else "the predictor"
    reader = "the critic, which was trained for it," if answer["critic"] else predictor
    guess = percent(answer["corpus"]["majority"])
    return MEASURES[name].meaning.format(marked=_marked(answer), predictor=predictor, reader=reader, majority=guess)


def selecting(answer: Answer) -> str:
    """By which rule words are selected, without which no number of the page means anything."""
    how = answer["selecting"]
    units, share = UNITS[how["units"]["kind"]].format(width=how["units"]["width"]), percent(how.get("rate"))
    rules = {
        "top": f"the likeliest {units} of each text, {share} of them, rounded up",
        "window": f"the likeliest stretch of {units} that is {share} of the text, rounded up",
        "threshold": f"all {units} with a probability above one half",
        "telling": f"the {units} that say most for the answer, {share} of them, rounded up",
        "aligned": _aligned(how),
    }
    rule = rules.get(how["rule"], how["meaning"])
    several = f", for each of {count(how['masks'])} masks" if how["masks"] > 1 else ""
    return (
        f"Nothing is drawn by chance here: selected are {rule}{several}. What is not selected "
        f"{READINGS[how['reading']]}. Under another rule every number of this page would be another."
    )


def _aligned(how: Mapping[str, Any]) -> str:
    transport = how.get("transport") or {}
    most, price = transport.get("most"), transport.get("price", 0.0)
    return (
        "the words that are aligned, by more than half, with a word of the question or hypothesis"
        + (f", at most {count(most)} of them" if most else "")
        + (f"; a pair must say more than {percent(price)} of what the strongest one says" if price else "")
    )


def limits(answer: Answer) -> tuple[str, ...]:
    """What the page cannot tell."""
    own = OWN_LIMITS.get(answer["selecting"]["rule"])
    return LIMITS if own is None else (*own, *LIMITS[len(own) :])


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
        ("Versions", ", ".join(f"{name} {version}" for name, version in answer["versions"].items())),
    ]
    return found


def _marked(answer: Answer) -> str:
    planted = answer["corpus"]["planted"]
    return "the words that decide by construction" if planted else "the words that people marked"

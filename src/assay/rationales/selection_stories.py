"""What the measures of a selection mean and how they are read, as the stories of recipes tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.stories import Measure, Story
from assay.writing import count, percent

MEASURES = (
    Measure("accuracy", better="high", help="Decisions that are right."),
    Measure(
        "size",
        better="low",
        help="Words of a text that are selected, as a share.",
        caution="as small as the decision allows",
    ),
    Measure(
        "token_f1",
        "token F1",
        "high",
        "How far the selected words are {marked}: 1 is all of them and no others.",
    ),
    Measure(
        "query_f1",
        "query token F1",
        "high",
        "The same for the words of the question or hypothesis that are aligned with any of the text.",
    ),
    Measure(
        "iou_f1",
        "IOU F1",
        "high",
        "The same for stretches of words: a selected one is a hit if it shares at least half of what both cover with a "
        "stretch of {marked}.",
    ),
    Measure(
        "auprc",
        "AUPRC",
        "high",
        "How well the order of all words, the selected first and then by their chances, puts {marked} before others: "
        "the area under precision and recall.",
    ),
    Measure(
        "comprehensiveness",
        better="high",
        help="How much less probable the decided class is to {predictor} when the selected words are taken from a "
        "text.",
    ),
    Measure(
        "sufficiency",
        better="low",
        help="How much less probable it is when nothing but the selected words is left.",
        caution="near 0 or below",
    ),
    Measure(
        "complement_accuracy",
        better="low",
        help="Decisions that are right when {reader} sees only what was not selected; always naming the most frequent "
        "class would be right in {majority}.",
        caution="low: then the rest says little",
    ),
)
"""With {marked} words, the {predictor}, the {reader} of the rest, and {majority}, how often the commonest class is."""

GAME = Story(
    measures=MEASURES,
    reading="Comprehensiveness and sufficiency compare three answers of the predictor to the class that the model "
    "decided for: to all words, to the selected ones, and to the rest. Many recipes never show whole texts to the "
    "predictor, so its answer to all words may be one to something it has not learnt from.\n\n"
    "A selection tells what the predictor read. It does not tell why these words were selected: the selector sees the "
    "whole text, and can put a message into the pattern of words that it lets through.",
)
"""Of recipes in which a selector plays with a predictor."""

_UNPLAYED = Story(measures=MEASURES, words={"predictor": "the model"})  # one network is learnt

ALIGNMENT = replace(
    _UNPLAYED,
    reading="Comprehensiveness and sufficiency compare three answers of the model to the class that it decided for: to "
    "all words of a text, to the aligned ones, and to the rest. The question or hypothesis stays whole each time, and "
    "words are aligned anew.\n\n"
    "What the aligned pairs say is added up, and nothing else decides but how likely each class is beforehand. Which "
    "pairs are aligned was found by comparing all of them, and that is not explained.",
)

PHRASES = replace(
    _UNPLAYED,
    reading="Comprehensiveness and sufficiency compare three answers of the model to the class that it decided for: to "
    "all words, to those of the selected phrases, and to the rest.\n\n"
    "The answer is the sum of what the whole text, its phrases and stored training phrases say. What the whole text "
    "says is not divided among its words, so the phrases explain no more of the answer than their own part.",
)

_SENTENCES = Story(
    title="Explanations as sentences: a sequence model answers and writes why",
    measures=(
        Measure("accuracy", better="high", help="Answers that are right."),
        Measure(
            "own",
            "by own explanations",
            "high",
            "Right labels found by {decider}, which is given the explanation that was written for the example.",
        ),
        Measure(
            "others",
            "by others' explanations",
            help="The same where explanations are exchanged among examples (Kumar and Talukdar, 2020).",
            caution="near a guess: then the label rests on the explanation",
        ),
        Measure(
            "las",
            "simulatability (LAS)",
            "high",
            "How much an explanation adds to a simulator that foresees the model's answer, the mean over explanations "
            "that give the answer away by themselves ({leaked} of {both}) and those that do not (Hase et al., 2020).",
        ),
        Measure(
            "mentioned",
            "label changes, mentioned words erased",
            "high",
            "Answers that change without the words of the example that the explanation repeats.",
        ),
        Measure(
            "random",
            "label changes, other words erased",
            help="The same without as many other words, drawn by the seed.",
            caution="below the line above: then the explanation names words that count",
        ),
    ),
    reading="A sentence that persuades people need not be what the model decided by. Exchange, simulation and erasure "
    "are tests that an explanation can fail; passing them does not show that it is the reason.",
)

SENTENCES = {
    "predict_then_explain": replace(_SENTENCES, question="Writes the label, then why.", paper="Camburu et al. (2018)"),
    "explain_then_predict": replace(
        _SENTENCES,
        question="Writes an explanation; a reader who sees nothing else names the label.",
        paper="Camburu et al. (2018)",
    ),
    "label_specific": replace(
        _SENTENCES,
        question="Writes an explanation for each label; a scorer of explanations decides which label is right.",
        paper="Kumar and Talukdar (2020)",
    ),
    "joint_prefix": replace(
        _SENTENCES,
        question="Writes the label, and where it is asked to explain, also why.",
        paper="Narang et al. (2020)",
    ),
}
"""Recipes of sequence models that explain their answers in sentences."""

RULES = {
    "top": "the likeliest {units} of each text, {share} of them, rounded up",
    "window": "the likeliest stretch of {units} that is {share} of the text, rounded up",
    "threshold": "all {units} with a probability above one half",
}
"""What is selected of the probabilities of units."""

TELLING = "the {units} that say most for the answer, {share} of them, rounded up"


def aligned(most: int | None, price: float) -> str:
    """What is selected where words are aligned, at most so many pairs at such a price."""
    return (
        "the words that are aligned, by more than half, with a word of the question or hypothesis"
        + (f", at most {count(most)} of them" if most else "")
        + (f"; a pair must say more than {percent(price)} of what the strongest one says" if price else "")
    )


def story(answer: Mapping[str, Any]) -> Story:
    """The story that a file holds, with the usual words for what it lacks; older files hold none."""
    recipe = answer["recipe"]
    before = {"transport": ALIGNMENT, "selfexplain": PHRASES}.get(recipe["name"], GAME)
    own = Story.of(recipe["story"]) if "story" in recipe else before
    return replace(own, measures=own.measures or GAME.measures, reading=own.reading or GAME.reading)


def rule(answer: Mapping[str, Any]) -> str:
    """The rule of selection that a file holds; older files hold a shorter one."""
    how = answer["selecting"]
    if "story" in answer["recipe"]:
        return str(how["meaning"])
    if how["rule"] == "aligned":
        transport = how.get("transport") or {}
        return aligned(transport.get("most"), transport.get("price", 0.0))
    return str((RULES | {"telling": TELLING}).get(how["rule"], how["meaning"]))

"""The lesson for each planted corpus, by name."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted_stories import PLACES, TAXONOMIES, belongings, whereabouts
from assay.data.planted_stories import write_story as write
from assay.data.planted_writing import plant
from assay.data.text import TextOptions
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe
from studies.planted.lessons import Blank, Lesson, one_negator_less


def recipe(encoder: str, hidden: int, batch_size: int, learning_rate: float, epochs: int) -> Recipe:
    """A small model of the best of so many epochs; some stand still for long before they learn, so none stops early."""
    return Recipe(
        Architecture(encoder=encoder, embedding=64, hidden=hidden),
        TextOptions(),
        Training(epochs=epochs, patience=epochs, batch_size=batch_size, learning_rate=learning_rate),
    )


def short(name: str, seed: int) -> Corpus:
    """Shorter stories than those of the corpus."""
    ask, lengths = {
        "planted:facts1": (whereabouts, (2, 4)),
        "planted:facts2": (belongings, (3, 5)),
    }[name]
    return plant(f"{name} short", PLACES, seed, partial(write, ask, lengths))


def plain(random: Random, example: Example) -> Example | None:
    """A pair of premise and hypothesis with nothing in the premise but the three words that count."""
    hypothesis, _, premise = example.text.partition("\n")
    known = {word for above in TAXONOMIES for word in (*above, *above.values())}
    words = [word for word in re.findall(r"\w+", premise) if word.lower() in known]
    return Example(f"{hypothesis}\n" + "{} {} were {}.".format(*words), example.label)


def spared(random: Random, example: Example) -> Example | None:
    """A pair without one of the words that could have counted but did not: its label stays."""
    known = {word for above in TAXONOMIES for word in (*above, *above.values())}
    spare = [
        (found.start(), found.end())
        for found in re.finditer(r"\w+", example.text)
        if found[0].lower() in known and found.span() not in (example.evidence or ())
    ]
    if not spare:
        return None
    start, end = random.choice(spare)
    return Example(example.text[:start] + example.text[end:], example.label)


def one_negator(example: Example) -> bool:
    """Whether the polar word says the opposite of the label."""
    return len(example.evidence or ()) == 2


def many(example: Example) -> bool:
    """Whether the subject is in the plural."""
    (start, end), _ = example.evidence or ()
    return example.text[start:end].endswith("s")


SMALL = recipe("lstm", hidden=64, batch_size=64, learning_rate=3e-3, epochs=12)

FACTS = ("planted:facts1", "planted:facts2", "planted:facts3")
ABOUT_FACTS = Lesson(
    recipe("lstm", hidden=256, batch_size=256, learning_rate=2e-3, epochs=22),
    seeds=25,
    together=FACTS,
    easier=tuple((partial(short, name), 5) for name in FACTS[:2]),
    second=Training(epochs=4, patience=4, batch_size=256, learning_rate=1e-3),
)

LESSONS: dict[str, Lesson] = {
    "planted:keyword": Lesson(SMALL, seeds=2, vary=(Blank(2),)),
    "planted:phrase": Lesson(SMALL, seeds=2),
    "planted:negation": Lesson(SMALL, seeds=8, hard=one_negator, vary=(Blank(2, last=True), one_negator_less)),
    "planted:majority": Lesson(SMALL, seeds=4),
    "planted:agreement": Lesson(
        recipe("lstm", hidden=64, batch_size=64, learning_rate=3e-3, epochs=20), seeds=10, hard=many, vary=(Blank(2),)
    ),
    "planted:shortcut": Lesson(SMALL, seeds=2, vary=(Blank(2),)),
    **dict.fromkeys(FACTS, ABOUT_FACTS),
    "planted:entail": Lesson(
        recipe("lstm", hidden=256, batch_size=256, learning_rate=2e-3, epochs=34),
        seeds=40,
        vary=(Blank(3), plain, spared),
    ),
}

ALONE = {
    "bilstm": Recipe(Architecture(encoder="lstm", embedding=64, hidden=32)),
    "cnn": Recipe(Architecture(encoder="cnn", embedding=64, hidden=32)),
    "transformer": Recipe(Architecture(encoder="transformer", alignment="dot", embedding=64, hidden=32)),
}
"""Three networks that learn from a corpus as it is, by name."""


def lessons(name: str) -> dict[str, Lesson]:
    """Candidates for a lesson that closes other routes: the usual one, then longer or wider, or a smaller one."""
    usual = LESSONS[name]
    if usual.recipe.architecture.hidden > SMALL.architecture.hidden:
        less = replace(usual.second, batch_size=64) if usual.second else None
        return {"large": usual, "small": replace(usual, recipe=SMALL, seeds=1, easier=(), second=less)}
    epochs = 2 * usual.recipe.training.epochs
    longer = replace(usual.recipe, training=replace(usual.recipe.training, epochs=epochs, patience=epochs))
    wider = replace(longer, architecture=replace(longer.architecture, hidden=128))
    return {"usual": usual, "longer": replace(usual, recipe=longer), "wider": replace(usual, recipe=wider)}


def alone(network: str) -> dict[str, Lesson]:
    """Candidates for a network that learns from one corpus as it is: the usual one, then a wider and slower one."""
    quick = replace(ALONE[network], training=Training(epochs=40, patience=15, learning_rate=2e-3))
    wider = replace(quick.architecture, hidden=64)
    slow = Recipe(wider, training=Training(epochs=60, patience=15, learning_rate=1e-3))
    return {"usual": Lesson(quick), "wider": Lesson(slow)}

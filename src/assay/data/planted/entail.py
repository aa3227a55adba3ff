"""Whether a hypothesis follows from a premise, by a small taxonomy."""

from __future__ import annotations

from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted.lexicon import NEUTRAL
from assay.data.planted.writing import example, expand, plant, spell

CLASSES = ("contradiction", "entailment", "neutral")
CONTRADICTION, ENTAILMENT, UNDECIDED = range(3)

# Word: what is just above it. Roots have no entry.
NUMBERS = dict.fromkeys(("two", "three", "four", "five"), "some")
KINDS = {
    "dogs": "animals", "poodles": "dogs", "beagles": "dogs",
    "cats": "animals", "kittens": "cats", "tabbies": "cats",
    "birds": "animals", "sparrows": "birds", "ravens": "birds",
    "children": "people", "boys": "children", "girls": "children",
}  # fmt: skip
ACTIONS = {
    "running": "moving", "sprinting": "running", "jogging": "running",
    "walking": "moving", "strolling": "walking", "marching": "walking",
    "sleeping": "resting", "napping": "sleeping", "dozing": "sleeping",
}  # fmt: skip
TAXONOMIES = (NUMBERS, KINDS, ACTIONS)

FRAMES = (
    "{time}, 0 {trait} 1 were 2 {where}", "0 1 were 2 {where} while {scene}",
    "{scene}, and 0 {trait} 1 were 2 {where}", "{where}, 0 1 were 2 {time}",
    "0 {trait} 1 from the {place} were 2 {where}, {time}", "{time}, {scene}, but 0 1 were still 2 {where}",
)  # fmt: skip
SCENES = (
    "the wind came from the {place}", "{weather} covered the {place}", "a train passed {where}",
    "the lamps were lit {where}", "the last bus stopped {where}", "the clock stopped {where}",
    "a bell rang {where}", "the evening turned cold", "smoke rose {where}",
)  # fmt: skip
TRAITS = ("small", "tall", "slim", "noisy", "wet", "muddy", "shy", "lively", "calm", "nervous")


def lineage(word: str, above: dict[str, str]) -> list[str]:
    """The word and what is above it, up to the root."""
    return [word, *lineage(above[word], above)] if word in above else [word]


def leaves(above: dict[str, str]) -> list[str]:
    """The words with nothing below them."""
    return [word for word in above if word not in above.values()]


def below_root(random: Random, leaf: str, above: dict[str, str]) -> str:
    """The leaf or a word between it and the root."""
    return random.choice(lineage(leaf, above)[:-1])


def write(random: Random, turn: int) -> tuple[Example, ...]:
    """One pair with the label whose turn it is.

    The premise is general in one respect, the hypothesis specific in one, whatever the label: only together
    do they tell it.
    """
    label = turn % 3
    precise = random.randrange(3)
    vague = precise if label == UNDECIDED else random.choice([part for part in range(3) if part != precise])
    premise = [random.choice(leaves(above)) for above in TAXONOMIES]
    hypothesis = [lineage(word, above)[-1] for word, above in zip(premise, TAXONOMIES, strict=True)]
    claimed, above = premise[precise], TAXONOMIES[precise]
    if label == CONTRADICTION:
        claimed = random.choice([leaf for leaf in leaves(above) if apart(leaf, claimed, above)])
    premise[vague] = hypothesis[vague]
    hypothesis[precise] = below_root(random, claimed, above)
    deciding = range(3) if label == ENTAILMENT else (precise,)
    frame = expand(random, random.choice(FRAMES) + ".", {**NEUTRAL, "scene": SCENES, "trait": TRAITS})
    for part, word in enumerate(premise):
        frame = frame.replace(str(part), f"[{word}]" if part in deciding else word)
    return (example(frame, label, spell("{} {} were {}.".format(*hypothesis))),)


def apart(one: str, other: str, above: dict[str, str]) -> bool:
    """Whether two leaves share nothing but their root."""
    return not set(lineage(one, above)[:-1]) & set(lineage(other, above)[:-1])


def entail(seed: int) -> Corpus:
    """Premises (text) and hypotheses (query) about one scene; each gives a number, a kind and an action.

    In each respect the word of the hypothesis is the premise's own or above it (it follows), below it (it is
    open) or neither (it is excluded). One excluded respect makes a contradiction, else one open respect makes
    it neutral, else it is an entailment. The evidence is the premise's word in the excluded or open respect,
    and all three words for an entailment. Neither text alone tells the label.
    """
    return plant("planted:entail", CLASSES, seed, write)

"""Whether a hypothesis follows from a premise, by a small taxonomy."""

from __future__ import annotations

from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted.lexicon import NEUTRAL
from assay.data.planted.writing import example, expand, plant

CLASSES = ("contradiction", "entailment", "neutral")
CONTRADICTION, ENTAILMENT, UNDECIDED = range(3)

# Word: what is just above it. Roots have no entry.
# Every root has equally many words below it, so that no root is the likelier one.
NUMBERS = {"two": "few", "three": "few", "fifty": "many", "sixty": "many"}
KINDS = {
    "dogs": "animals", "poodles": "dogs", "beagles": "dogs",
    "cats": "animals", "kittens": "cats", "tabbies": "cats",
    "children": "people", "boys": "children", "girls": "children",
    "adults": "people", "men": "adults", "women": "adults",
}  # fmt: skip
ACTIONS = {"running": "moving", "walking": "moving", "sleeping": "resting", "sitting": "resting"}
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


def write(random: Random, turn: int) -> tuple[Example, ...]:
    """One pair with the label whose turn it is.

    Whatever the label, the premise is general in one respect and the hypothesis specific in one, and one of the two
    may be so in another respect as well: only together do they tell the label.
    """
    label = turn % 3
    precise, other, spare = random.sample(range(3), 3)
    general, specific = {precise if label == UNDECIDED else other}, {precise}
    random.choice((general, specific, set[int]())).add(spare)
    scene = [random.choice(leaves(above)) for above in TAXONOMIES]
    claim = list(scene)
    deciding = {ENTAILMENT: range(3), UNDECIDED: (precise,), CONTRADICTION: (random.randrange(3),)}[label]
    if label == CONTRADICTION:
        (respect,) = deciding
        claim[respect] = excluded(random, scene[respect], TAXONOMIES[respect], respect in specific)
    premise = [lineage(word, TAXONOMIES[at])[-1] if at in general else word for at, word in enumerate(scene)]
    hypothesis = [
        random.choice(lineage(word, above)[:-1]) if at in specific else lineage(word, above)[-1]
        for at, (word, above) in enumerate(zip(claim, TAXONOMIES, strict=True))
    ]
    frame = expand(random, random.choice(FRAMES) + ".", {**NEUTRAL, "scene": SCENES, "trait": TRAITS})
    for part, word in enumerate(premise):
        frame = frame.replace(str(part), f"[{word}]" if part in deciding else word)
    asked = [f"[{word}]" if part in deciding else word for part, word in enumerate(hypothesis)]
    return (example(frame, label, "{} {} were {}.".format(*asked)),)


def excluded(random: Random, leaf: str, above: dict[str, str], specific: bool) -> str:
    """A leaf that shares nothing with this one but the root, and not even that where only the root will be named."""
    line = lineage(leaf, above)
    shared = set(line[:-1] if specific else line)
    return random.choice([other for other in leaves(above) if not shared & set(lineage(other, above))])


def entail(seed: int) -> Corpus:
    """Premises (text) and hypotheses (query) about one scene; each gives a number, a kind and an action.

    In each respect the word of the hypothesis is the premise's own or above it (it follows), below it (it is
    open) or neither (it is excluded). One excluded respect makes a contradiction, else one open respect makes
    it neutral, else it is an entailment. The evidence is the word in the excluded or open respect, and all three
    words for an entailment, in the premise and in the hypothesis. Neither text alone tells the label.
    """
    return plant("planted:entail", CLASSES, seed, write)

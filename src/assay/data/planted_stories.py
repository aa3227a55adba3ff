"""Planted corpora that need several facts: stories with questions, and entailment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted_writing import Grammar, example, expand, filled, plant

# A small world in which people move about and carry things, told one sentence an event

PLACES = ("cellar", "garden", "harbour", "kitchen", "library", "stable")
# Few names: a small model finds out about each of them by itself.
NAMES = ("Ada", "Bruno", "Clara", "Dario")
THINGS = ("lantern", "violin", "basket", "flute")

SENTENCES: Grammar = {
    "move": (
        "{then}{name} went to the {place}", "{then}{name} walked to the {place}",
        "{then}{name} moved to the {place}", "{then}{name} hurried over to the {place}",
        "{then}{name} wandered off to the {place}", "{then}{name} strolled to the {place}",
        "{then}{name} headed for the {place}", "{then}{name} ran to the {place}",
    ),
    "take": (
        "{then}{name} took the {thing}", "{then}{name} picked up the {thing}",
        "{then}{name} lifted the {thing}", "{then}{name} grabbed the {thing}",
        "{then}{name} took hold of the {thing}",
    ),
    "drop": (
        "{then}{name} put down the {thing}", "{then}{name} dropped the {thing}",
        "{then}{name} let go of the {thing}", "{then}{name} set down the {thing}",
    ),
    "rest": (
        "{name} hummed an old tune", "{name} yawned twice", "{name} looked at the clouds",
        "{name} told a long story", "meanwhile the wind grew colder", "a dog barked in the distance",
        "{name} thought about supper",
    ),
}  # fmt: skip
OPENERS = ("", "", "", "then ", "later ", "after that ", "soon ")


@dataclass(frozen=True)
class Event:
    """One sentence of a story: `place` is where the person is afterwards, by number."""

    kind: str
    name: str
    thing: str
    place: int


@dataclass
class World:
    """Where everybody is and who holds what, while a story unfolds."""

    names: list[str]
    things: list[str]
    at: dict[str, int] = field(default_factory=dict)
    holder: dict[str, str] = field(default_factory=dict)
    lies: dict[str, int] = field(default_factory=dict)

    def step(self, random: Random) -> Event:
        """Something that can happen now, and has happened when this returns."""
        name = random.choice(self.names)
        held = [thing for thing in self.things if self.holder.get(thing) == name]
        near = self.within_reach(name)
        kind = random.choice(("move", "move", "move", "take", "take", "drop", "rest"))
        if name not in self.at or (kind == "take" and not near) or (kind == "drop" and not held):
            kind = "move"
        thing = random.choice({"take": near, "drop": held}.get(kind, [""]))
        if kind == "move":
            self.at[name] = random.choice([place for place in range(len(PLACES)) if place != self.at.get(name)])
        elif kind == "take":
            self.holder[thing] = name
        elif kind == "drop":
            del self.holder[thing]
            self.lies[thing] = self.at[name]
        return Event(kind, name, thing, self.at[name])

    def within_reach(self, name: str) -> list[str]:
        """The things a person can take: nobody holds them, and they may lie where the person is."""
        here = self.at.get(name, -1)
        return [thing for thing in self.things if thing not in self.holder and self.lies.get(thing, here) == here]


def tell(random: Random, event: Event, places: list[str], first: bool) -> str:
    """The event as a sentence; the first one of a story follows nothing."""
    words: Grammar = {
        "name": (event.name,),
        "thing": (event.thing,),
        "place": (places[event.place],),
        "then": OPENERS[:1] if first else OPENERS,
    }
    return expand(random, random.choice(SENTENCES[event.kind]) + ".", words)


# Questions about a story whose answers follow from one, two or three of its sentences


@dataclass(frozen=True)
class Question:
    """What is asked, the number of the place that answers it, and the sentences that are needed for that.

    `{}` stands in the wording for the place whose number is `about`, if the question names one.
    """

    wording: str
    answer: int
    support: tuple[int, ...]
    about: int = 0


def last(story: list[Event], kinds: tuple[str, ...], name: str = "", thing: str = "") -> int:
    """The position of the last event of these kinds with this person and thing, if given; -1 without any."""
    found = (
        position
        for position in reversed(range(len(story)))
        if story[position].kind in kinds and name in ("", story[position].name) and thing in ("", story[position].thing)
    )
    return next(found, -1)


def whereabouts(story: list[Event]) -> list[Question]:
    """Where a person is: the person's last move."""
    names = sorted({event.name for event in story if event.kind == "move"})
    moves = [last(story, ("move",), name) for name in names]
    return [Question(f"Where is {name}?", story[move].place, (move,)) for name, move in zip(names, moves, strict=True)]


def belongings(story: list[Event]) -> list[Question]:
    """Where a thing is: who had it last, and the last move of that person while having it."""
    questions = []
    for thing in sorted({event.thing for event in story if event.thing}):
        grip = last(story, ("take", "drop"), thing=thing)
        until = grip if story[grip].kind == "drop" else len(story)
        move = last(story[:until], ("move",), story[grip].name)
        question = Question(f"Where is the {thing}?", story[move].place, (grip, move))
        if all(question.answer not in stops(without(story, fact), thing)[-1] for fact in question.support):
            questions.append(question)
    return questions


def journeys(story: list[Event]) -> list[Question]:
    """Where a thing was before it came to a place: who took it, and that person's two moves."""
    questions = []
    for thing in sorted({event.thing for event in story if event.thing}):
        path = arrivals(story, thing)
        for position, arrival in enumerate(path):
            place = story[arrival].place
            if position == 0 or [story[other].place for other in path].count(place) > 1:
                continue
            grip = last(story[:arrival], ("take",), thing=thing)
            start = last(story[:arrival], ("move",), story[arrival].name)
            wording = f"Where was the {thing} before it came to the {{}}?"
            question = Question(wording, story[start].place, (grip, start, arrival), place)
            if others_came(story, question) and all(
                question.answer not in before(stops(without(story, fact), thing), place) for fact in question.support
            ):
                questions.append(question)
    return questions


def arrivals(story: list[Event], thing: str) -> list[int]:
    """The events by which a thing came to each place on its way; the first is where it was first taken."""
    path: list[int] = []
    holder = ""
    for position, event in enumerate(story):
        if event.thing == thing:
            holder = event.name if event.kind == "take" else ""
            path = path or [position]
        elif event.kind == "move" and event.name == holder:
            path.append(position)
    return path


def without(story: list[Event], position: int) -> list[Event]:
    """The story with one sentence left out."""
    return story[:position] + story[position + 1 :]


def stops(story: list[Event], thing: str) -> list[set[int]]:
    """The places on a thing's way, as far as the sentences tell; where they contradict each other, all that they tell.

    With a sentence left out, this is what a reader could still find out by another route: a thing that lies
    where somebody put it down needs no word of how the next person came there.
    """
    places: dict[str, int] = {}
    path: list[set[int]] = [set()]
    holder = ""
    for event in story:
        if event.kind == "move":
            places[event.name] = event.place
            if event.name == holder:
                path.append({event.place})
        elif event.thing == thing:
            holder = event.name if event.kind == "take" else ""
            path[-1] |= {places[event.name]} if event.name in places else set()
    return path


def before(path: list[set[int]], goal: int) -> set[int]:
    """All places from which a thing came to the goal."""
    return set[int]().union(*(start for start, end in pairwise(path) if goal in end))


def others_came(story: list[Event], question: Question) -> bool:
    """Whether a move from another place led there too: else one need not know who took the thing."""
    places: dict[str, int] = {}
    found = False
    for event in story:
        if event.kind == "move":
            origin = places.get(event.name, question.answer)
            found = found or (event.place == question.about and origin != question.answer)
            places[event.name] = event.place
    return found


def write_story(
    ask: Callable[[list[Event]], list[Question]], lengths: tuple[int, int], random: Random, turn: int
) -> tuple[Example, ...]:
    """One story with a question whose answer is the place whose turn it is; none if nothing can be asked."""
    world = World(random.sample(NAMES, random.choice((2, 3))), random.sample(THINGS, 2))
    story = [world.step(random) for _ in range(random.randint(*lengths))]
    questions = ask(story)
    if not questions:
        return ()
    question = random.choice(questions)
    # Renaming the places of a finished story balances the answers and changes nothing else.
    label = turn % len(PLACES)
    shift = label - question.answer
    places = [PLACES[(place + shift) % len(PLACES)] for place in range(len(PLACES))]
    told = [tell(random, event, places, position == 0) for position, event in enumerate(story)]
    for position in question.support:
        told[position] = f"[{told[position]}]"
    return (example(" ".join(told), label, f"[{question.wording.format(places[question.about])}]"),)


def facts1(seed: int) -> Corpus:
    """Stories of moving people; "Where is Ada?" has one supporting sentence, Ada's last move.

    The classes are the places; the evidence is the question and the supporting sentence.
    Without one of these the story gives another answer or none. (The three tasks follow the idea of one, two
    and three supporting facts of Weston et al. 2015, with our own world and words.)
    """
    return plant("planted:facts1", PLACES, seed, partial(write_story, whereabouts, (4, 7)))


def facts2(seed: int) -> Corpus:
    """Stories of people and things; "Where is the flute?" has two supporting sentences.

    They are the last one in which somebody takes or puts down the thing, and this person's last move (before
    putting it down, if so). A thing moves with the person who holds it. The evidence is the question and both.
    """
    return plant("planted:facts2", PLACES, seed, partial(write_story, belongings, (4, 6)))


def facts3(seed: int) -> Corpus:
    """Stories of people and things; "Where was the flute before it came to the cellar?" needs three facts.

    They are the move by which somebody brought the thing there, the move of this person before that, and the
    sentence in which this person took the thing. It came to the place of the question only once, but somebody
    also came there from elsewhere without it. The evidence is the question and the three.
    """
    return plant("planted:facts3", PLACES, seed, partial(write_story, journeys, (5, 8)))


# Whether a hypothesis follows from a premise, by a small taxonomy

RELATIONS = ("contradiction", "entailment", "neutral")
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


def write_pair(random: Random, turn: int) -> tuple[Example, ...]:
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
    frame = filled(random, FRAMES, scene=SCENES, trait=TRAITS)
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
    return plant("planted:entail", RELATIONS, seed, write_pair)

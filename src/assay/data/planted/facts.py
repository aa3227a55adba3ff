"""Questions about a story whose answers follow from one, two or three of its sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from random import Random

from assay.data.examples import Corpus, Example
from assay.data.planted.story import NAMES, PLACES, THINGS, Event, World, tell
from assay.data.planted.writing import example, plant


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


def write(
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
    return plant("planted:facts1", PLACES, seed, partial(write, whereabouts, (4, 7)))


def facts2(seed: int) -> Corpus:
    """Stories of people and things; "Where is the flute?" has two supporting sentences.

    They are the last one in which somebody takes or puts down the thing, and this person's last move (before
    putting it down, if so). A thing moves with the person who holds it. The evidence is the question and both.
    """
    return plant("planted:facts2", PLACES, seed, partial(write, belongings, (4, 6)))


def facts3(seed: int) -> Corpus:
    """Stories of people and things; "Where was the flute before it came to the cellar?" needs three facts.

    They are the move by which somebody brought the thing there, the move of this person before that, and the
    sentence in which this person took the thing. It came to the place of the question only once, but somebody
    also came there from elsewhere without it. The evidence is the question and the three.
    """
    return plant("planted:facts3", PLACES, seed, partial(write, journeys, (5, 8)))

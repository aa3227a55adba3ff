"""A small world in which people move about and carry things, told one sentence an event."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from assay.data.planted.writing import Grammar, expand

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

"""A hierarchy of phrases as a picture: the words below, and above them the phrases of each level as coloured bars."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from rich.text import Text

from assay.report.heatmaps import strengths, terminal
from assay.report.html import TEMPLATES
from assay.trees import Phrase, Tree
from assay.writing import count, figures, number

MOST = 16  # levels that are shown
LONGEST = 40  # letters of a word that are shown
NAMED = 200  # letters of a phrase that are named
LEAST = 0.0005  # a change of probability that is told as a number


def drawn(tree: Tree, words: Sequence[str]) -> str:
    """The tree as an HTML table without a script, each phrase one bar over its words, as tall as long as it holds.

    The strongest phrase sets the scale; each bar has its score as a number, and both phrase and exact score on hover.
    """
    levels = [tree.levels[level] for level in shown(tree)]
    tall, colours, places = Counter(chain.from_iterable(levels)), _colours(tree), _places(tree)
    rows = ""
    for above, level in pairwise([(), *levels]):
        new = sorted(set(level) - set(above))
        bars = "".join(_bar(phrase, tall[phrase], words, colours[phrase], places) for phrase in new)
        rows += f'<tr><th scope="row">{count(len(level))}</th>{bars}</tr>'
    below = "".join(f'<th scope="col"><bdi>{_cut(word, LONGEST)}</bdi></th>' for word in words)
    return (
        f'<figure class="tree"><div class="across" tabindex="0" role="group" aria-label="{html.escape(told(tree))}">'
        f"<table><tbody>{rows}</tbody><tfoot><tr><td></td>{below}</tr></tfoot></table></div>"
        f"<figcaption>{html.escape(told(tree))}{_together(tree, words)}</figcaption></figure>"
    )


def style(scope: str) -> str:
    """The style of drawn trees within a selector, which has the colours --for and --against and the steps p1 to n8."""
    return (TEMPLATES / "tree.css").read_text(encoding="utf-8").replace("&", scope)


def told(tree: Tree) -> str:
    """What a drawn tree shows."""
    levels = shown(tree)
    words = "one word" if tree.words == 1 else f"{count(tree.words)} words"
    some = "" if len(levels) == len(tree.levels) else f", on {len(levels)} of {count(len(tree.levels))} levels"
    return (
        f"{tree.method}: the phrases of {words}{some}, and on the left how many there are. "
        "Orange speaks for the class, blue against it."
    )


def cohesion(tree: Tree, words: Sequence[str]) -> str | None:
    """How much the strongest phrase owes to its words standing together, where that was measured."""
    phrase = tree.strongest
    if tree.cohesion is None or phrase is None:
        return None
    name = " ".join(words[phrase.start : phrase.stop])
    shown = name if len(name) <= NAMED else f"{name[:NAMED]}…"
    moves = f"{'falls' if tree.cohesion > 0 else 'rises'} by {number(abs(tree.cohesion), 3)} on average"
    if abs(tree.cohesion) < LEAST:
        moves = "hardly changes"
    return (
        f"Cohesion: with the words of its strongest phrase, “{shown}”, scattered over the text, the probability of the "
        f"class {moves}."
    )


def _together(tree: Tree, words: Sequence[str]) -> str:
    said = cohesion(tree, words)
    return "" if said is None else f" <bdi>{html.escape(said)}</bdi>"


def shown(tree: Tree) -> list[int]:
    """The levels that are shown: all, or fewer and fewer towards the words, and always the first and the last."""
    last = len(tree.levels) - 1
    if last < MOST:
        return list(range(last + 1))
    sizes = [len(level) for level in tree.levels]
    steps = [sizes[0] * (sizes[-1] / sizes[0]) ** (step / (MOST - 1)) for step in range(MOST)]
    return sorted({min(range(last + 1), key=lambda level: abs(sizes[level] - size)) for size in steps} | {0, last})


def lines(tree: Tree, words: Sequence[str]) -> Text:
    """The tree for a terminal: a line a level, in which bars part the phrases, coloured as heatmaps are."""
    text, starts, ends, scores = "", [], [], []
    for level in shown(tree):
        for phrase in tree.levels[level]:
            starts.append(len(text))
            text += " ".join(words[phrase.start : phrase.stop])
            ends.append(len(text))
            scores.append(phrase.score)
            text += "\n" if phrase.stop == tree.words else "│"
    found = terminal(text.rstrip("\n"), starts, ends, scores)
    said = cohesion(tree, words)
    return found if said is None else Text.assemble(found, (f"\n{said}", "dim"))


def outline(tree: Tree, words: Sequence[str]) -> Iterator[str]:
    """The tree where there are no colours: a line a phrase with its score, under the phrase that it is part of."""
    above: list[Phrase] = []
    for phrase in sorted({each for level in tree.levels for each in level}, key=lambda each: (each.start, -each.stop)):
        while above and above[-1].stop <= phrase.start:
            above.pop()
        yield f"{phrase.score:8.4f}  {'  ' * len(above)}{' '.join(words[phrase.start : phrase.stop])}"
        above.append(phrase)
    if said := cohesion(tree, words):
        yield said


def _colours(tree: Tree) -> dict[Phrase, str]:
    """The class that colours each phrase."""
    phrases = sorted({each for level in tree.levels for each in level})
    steps = strengths([each.score for each in phrases])
    names = [f"{'p' if step > 0 else 'n'}{abs(step)}" if step else "none" for step in steps]
    return dict(zip(phrases, names, strict=True))


def _places(tree: Tree) -> int:
    """The places of three figures of the strongest score; more of a weaker one would only make its words wide."""
    strongest = max((abs(each.score) for level in tree.levels for each in level), default=0.0)
    return max(0, 2 - math.floor(math.log10(strongest))) if 0 < strongest < math.inf else 2


def _bar(phrase: Phrase, rows: int, words: Sequence[str], colour: str, places: int) -> str:
    """A phrase over its words; where it stays it reaches down."""
    sides = {"rowspan": rows, "colspan": phrase.stop - phrase.start}
    spans = "".join(f' {side}="{size}"' for side, size in sides.items() if size > 1)
    name, score = _cut(" ".join(words[phrase.start : phrase.stop]), NAMED), figures(phrase.score)
    told = number(phrase.score, places) if round(phrase.score, places) else "0"
    return f'<td{spans} class="{colour}" title="⁨{name}⁩ {score}"><span>{told}</span></td>'


def _cut(text: str, most: int) -> str:
    return html.escape(text if len(text) <= most else f"{text[:most]}…")

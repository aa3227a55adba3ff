"""A tree as a picture, in a terminal and as plain lines."""

from __future__ import annotations

import io
import random
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from assay.report import notebook
from assay.report.trees import MOST, cohesion, drawn, lines, outline, shown, style, told
from assay.trees import Tree, levels_of
from tests.report.shown import HOSTILE, SENTENCE, made_up

WORDS = ["not", "a", "good", "film"]
TREE = Tree(
    "hedge",
    levels_of(
        [
            [[0, 4, 0.5]],
            [[0, 3, -1.0], [3, 4, 0.0]],
            [[0, 1, 0.25], [1, 3, 0.75], [3, 4, 0.0]],
            [[0, 1, 0.25], [1, 2, 0.001], [2, 3, 0.5], [3, 4, 0.0]],
        ]
    ),
)


class Page(HTMLParser):
    """The cells of each row, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[dict[str, str | None]]] = []
        self.tags: set[str] = set()
        self.said = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append(dict(attrs) | {"text": ""})

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1]["text"] = f"{self.rows[-1][-1]['text']}{data}"


def grown(words: int, seed: int = 0) -> Tree:
    """A random tree."""
    draw = random.Random(seed)
    cuts, bounds, scores, levels = list(range(1, words)), [0, words], {}, []
    draw.shuffle(cuts)
    for cut in [0, *cuts]:
        bounds = sorted({*bounds, cut})
        spans = list(pairwise(bounds))
        levels.append([[a, b, scores.setdefault((a, b), draw.gauss(0, 1))] for a, b in spans])
    return Tree("acd", levels_of(levels))


@pytest.mark.parametrize("words", [1, 2, 5, 16, 17, 60])
def test_every_place_of_the_picture_is_covered_once(words):
    tree = grown(words)
    page = Page(drawn(tree, [f"w{place}" for place in range(words)]))
    *levels, below = page.rows
    assert len(levels) == len(shown(tree)) <= MOST + 1
    covered = [[0] * words for _ in levels]
    for row, cells in enumerate(levels):
        place = 0
        for cell in cells[1:]:
            while covered[row][place]:
                place += 1
            for down in range(int(cell.get("rowspan") or 1)):
                for across in range(int(cell.get("colspan") or 1)):
                    covered[row + down][place + across] += 1
    assert all(count == 1 for row in covered for count in row)
    assert [cell["text"] for cell in below[1:]] == [f"w{place}" for place in range(words)]
    assert [int(cells[0]["text"] or 0) for cells in levels] == [len(tree.levels[level]) for level in shown(tree)]


def test_a_bar_has_its_colour_its_number_and_its_words_and_reaches_as_far_down_as_it_holds():
    page = Page(drawn(TREE, WORDS))
    cells = {cell["title"]: cell for row in page.rows for cell in row if "title" in cell}
    said = {str(title).replace("\u2068", "").replace("\u2069", ""): cell for title, cell in cells.items()}
    assert set(said) == {
        "not a good film 0.5",
        "not a good −1",
        "film 0",
        "not 0.25",
        "a good 0.75",
        "a 0.001",
        "good 0.5",
    }
    assert (said["not a good −1"]["class"], said["not a good −1"]["colspan"]) == ("n8", "3")
    assert said["a good 0.75"]["class"] == "p6"
    assert said["film 0"]["class"] == said["a 0.001"]["class"] == "none"
    assert said["film 0"]["rowspan"] == "3"
    assert said["not 0.25"]["rowspan"] == "2"
    written = {str(title): str(cell["text"]) for title, cell in said.items()}
    assert (written["not a good −1"], written["a good 0.75"], written["film 0"]) == ("−1.00", "0.75", "0")
    assert written["a 0.001"] == "0"  # beside a strongest of 1; its own figures would only make it wide


def test_the_first_and_last_levels_are_always_shown():
    for words in (1, 2, 16, 17, 18, 50):
        levels = shown(grown(words))
        assert (levels[0], levels[-1]) == (0, words - 1)
        assert levels == sorted(set(levels))
    assert re.search(r"on 1\d of 50 levels", told(grown(50)))
    assert "one word" in told(grown(1))


def test_words_stay_words():
    page = Page(drawn(grown(len(HOSTILE)), HOSTILE))
    assert page.tags == {"figure", "div", "table", "tbody", "tr", "th", "td", "span", "tfoot", "bdi", "figcaption"}
    assert len(drawn(grown(len(HOSTILE)), HOSTILE)) < 20_000


def test_the_style_stays_within_its_scope():
    rules = re.findall(r"^([^{}\n]+)\{", style(".here"), re.MULTILINE)
    assert rules
    assert all(part.strip().startswith(".here .tree") for rule in rules for part in rule.split(","))


@settings(max_examples=20)
@given(st.integers(1, 14), st.integers(0, 5))
def test_each_line_of_a_terminal_is_the_text_and_bars_part_the_phrases(words: int, seed: int) -> None:
    tree, names = grown(words, seed), [f"w{place}" for place in range(words)]
    found = lines(tree, names).plain.splitlines()
    assert len(found) == words
    for level, line in zip(tree.levels, found, strict=True):
        assert line.replace("│", " ") == " ".join(names)
        assert [part.count(" ") + 1 for part in line.split("│")] == [each.stop - each.start for each in level]


def test_colours_are_on_one_scale_over_all_levels():
    spans = {lines(TREE, WORDS).plain[span.start : span.end]: str(span.style) for span in lines(TREE, WORDS).spans}
    assert "underline" in spans["not a good"]
    assert "underline" not in spans["not a good film"]
    assert "a" not in spans and "film" not in spans


def test_plain_lines_put_each_phrase_under_the_one_it_is_part_of():
    assert list(outline(TREE, WORDS)) == [
        "  0.5000  not a good film",
        " -1.0000    not a good",
        "  0.2500      not",
        "  0.7500      a good",
        "  0.0010        a",
        "  0.5000        good",
        "  0.0000    film",
    ]


def test_an_explanation_shows_its_trees_everywhere():
    made = replace(made_up(SENTENCE), trees={"hedge by <i>cd</i>": grown(len(SENTENCE))})
    page = Page(made._repr_html_())
    assert "hedge by <i>cd</i>: the phrases of" in page.said
    assert "i" not in page.tags
    assert made.json()["trees"]["hedge by <i>cd</i>"] == grown(len(SENTENCE)).json()
    assert next(outline(grown(len(SENTENCE)), SENTENCE)) in str(made)
    console = Console(width=400, file=io.StringIO(), no_color=True)
    console.print(made)
    assert isinstance(console.file, io.StringIO)
    assert lines(grown(len(SENTENCE)), SENTENCE).plain.splitlines()[1] in console.file.getvalue()
    assert ".tree" in notebook._style()[0]
    assert "<figure" not in made_up(SENTENCE)._repr_html_()


def test_a_tree_says_how_much_its_strongest_phrase_owes_to_standing_together():
    measured = replace(TREE, cohesion=0.31234)
    sentence = (
        "Cohesion: with the words of its strongest phrase, “a good”, scattered over the text, the probability of the "
        "class falls by 0.312 on average."
    )
    assert [*outline(TREE, WORDS), sentence] == list(outline(measured, WORDS))
    assert lines(measured, WORDS).plain == f"{lines(TREE, WORDS).plain}\n{sentence}"
    assert Page(drawn(measured, WORDS)).said.endswith(f" {sentence}")
    assert "rises by 0.312" in str(cohesion(replace(TREE, cohesion=-0.31234), WORDS))
    assert "hardly changes." in str(cohesion(replace(TREE, cohesion=-1e-4), WORDS))
    hostile = replace(grown(len(HOSTILE)), cohesion=0.5)
    assert Page(drawn(hostile, HOSTILE)).tags == Page(drawn(grown(len(HOSTILE)), HOSTILE)).tags | {"bdi"}


def test_a_stored_tree_without_cohesion_has_none():
    assert Tree.of({"method": TREE.method, "levels": TREE.json()["levels"]}) == TREE
    assert cohesion(TREE, WORDS) is None
    assert Tree.of(replace(TREE, cohesion=0.25).json()).cohesion == 0.25

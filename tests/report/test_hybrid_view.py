"""The view of why a model looks at a word: its words follow from its numbers, and nothing in it can harm."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from assay.document import Bar, Document, Figure, Group, Section, plain
from assay.influence.page import words_behind
from assay.report import markdown
from assay.report.html import fragment, render

HOSTILE = "</p><script>alert(1)</script>"


def written(text: str, scores: list[float]) -> dict[str, Any]:
    starts, place = [], 0
    for word in text.split():
        starts.append(text.index(word, place))
        place = starts[-1] + len(word)
    ends = [start + len(word) for start, word in zip(starts, text.split(), strict=True)]
    return {"text": text, "starts": starts, "ends": ends, "scores": scores}


def answer(salience: float = 2.0, word: str = "loved") -> dict[str, Any]:
    sign = 1 if salience > 0 else -1
    behind = [
        {"row": 1204, "label": "positive", "score": -0.02 * sign, **written("we loved all", [0.0, -0.05 * sign, 0.01])},
        {"row": 7, "label": "negative", "score": -0.001 * sign, **written("love it", [0.002 * sign, 0.001 * sign])},
    ]
    return {
        "asked": "positive",
        "target": "margin",
        "salience": "norm" if salience > 0 else "input_x_gradient",
        "trained": 6920,
        **written(f"i {word} it", [0.5, salience, 0.1]),
        "tokens": [{"place": 1, "salience": salience, "behind": behind}],
    }


class Tags(HTMLParser):
    """Collects tags, and checks that those that are opened are closed in their order."""

    VOID = ("meta", "link", "rect", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def said(made: dict[str, Any]) -> str:
    return markdown.render(page(made))


def page(made: dict[str, Any]) -> Document:
    return Document("", "", (Section("tokens", "", words_behind(made)),), "0", "")


def looks(made: dict[str, Any]) -> list[Group]:
    """Each training text behind the first word that was asked about."""
    (behind,) = (block for block in words_behind(made) if isinstance(block, Group))
    return [block for block in behind.blocks if isinstance(block, Group)]


def test_changes_are_told_as_shares_of_the_salience() -> None:
    changes = [plain(figure.title) for look in looks(answer()) for figure in look.blocks if isinstance(figure, Figure)]
    assert changes == ["−1.00 %", "−0.05 %"]
    text = said(answer())
    assert "Behind loved salience 2" in text
    assert "Most through loved." in text and text.count("Through none of its words alone.") == 1
    assert "| loved | −2.50 % |" in text
    bars = [figure.drawing for look in looks(answer()) for figure in look.blocks if isinstance(figure, Figure)]
    assert bars == [Bar(1.0), Bar(0.05)]


def test_of_a_negative_salience_less_is_nearer_to_nothing() -> None:
    for salience in (2.0, -2.0):
        assert "Most through loved." in said(answer(salience))
        text = fragment(looks(answer(salience))[0].blocks)
        assert '<mark class="p8" tabindex="0"' in text
        assert text.index("p8") < text.index("loved")


def test_nothing_behind_a_word_is_said_in_words() -> None:
    lonely = answer()
    lonely["tokens"][0]["behind"] = []
    assert "as much or more" in said(lonely)


def test_words_of_others_are_text_and_the_page_asks_for_nothing() -> None:
    hostile = answer(word=HOSTILE)
    hostile["tokens"][0]["behind"][0] |= {"label": HOSTILE, **written(f"we {HOSTILE} all", [0.0, -0.05, 0.01])}
    made = render(page(hostile))
    tags = Tags()
    tags.feed(made)
    assert tags.open == []
    assert "script" not in tags.seen
    assert made.count("&lt;script&gt;") >= 4
    assert "http:" not in made
    assert "https:" not in made
    assert "<script>" not in said(hostile).replace("\\<script>", "")


def test_half_of_a_letter_does_not_keep_the_page_from_being_written() -> None:
    assert "?" in render(page(answer(word="\ud800")))

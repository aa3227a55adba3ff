"""The view of why a model looks at a word: its words follow from its numbers, and nothing in it can harm."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from assay.report.influence.hybrid import CSS, fragment, headline, looks, render

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


def test_changes_are_told_as_shares_of_the_salience() -> None:
    (look,) = looks(answer())
    assert look.word == "loved"
    assert [each.change for each in look.trained] == ["−1.00 %", "−0.05 %"]
    assert [each.word for each in look.trained] == ["loved", ""]  # no word of the second text made the model look
    assert dict(look.trained[0].words)["loved"] == "−2.50 %"
    assert [each.bar for each in look.trained] == [100.0, 5.0]
    assert "of 6,920 training texts" in headline(answer())


def test_of_a_negative_salience_less_is_nearer_to_nothing() -> None:
    for salience in (2.0, -2.0):
        first = looks(answer(salience))[0].trained[0]
        assert first.word == "loved"
        assert '<mark class="p8" tabindex="0"' in first.html
        assert first.html.index("p8") < first.html.index("loved")


def test_nothing_behind_a_word_is_said_in_words() -> None:
    lonely = answer()
    lonely["tokens"][0]["behind"] = []
    assert headline(lonely).startswith("No training text")
    assert "as much or more" in render(lonely)


def test_words_of_others_are_text_and_the_page_asks_for_nothing() -> None:
    hostile = answer(word=HOSTILE)
    hostile["tokens"][0]["behind"][0] |= {"label": HOSTILE, **written(f"we {HOSTILE} all", [0.0, -0.05, 0.01])}
    page = render(hostile, [("Corpus", HOSTILE)])
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert "script" not in tags.seen
    assert page.count("&lt;script&gt;") >= 4
    assert "http:" not in page
    assert "https:" not in page


def test_a_part_of_a_page_has_all_that_the_page_has() -> None:
    part = fragment(answer())
    assert part in render(answer())
    assert CSS in render(answer())
    assert part.startswith('<div class="hybrid">')
    assert 'dir="auto"' in part


def test_half_of_a_letter_does_not_keep_the_page_from_being_written() -> None:
    assert "?" in render(answer(word="\ud800"))

"""How one explanation reads, in a terminal and where there are no colours."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from assay.run.explaining import Explanation

ASKED = "Where is [red]Mary[/red]?"


def explanation(query: str | None) -> Explanation:
    return Explanation(
        text="Mary sleeps",
        query=query,
        spans=[(0, 4), (5, 11)],
        predicted="garden",
        probabilities={"garden": 0.75, "office": 0.25},
        scores={"attention": [0.25, 0.75]},
        target="garden",
        notes={"attention": {}},
    )


def printed(shown: Explanation) -> list[str]:
    console = Console(width=80, file=io.StringIO(), no_color=True)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_query_stands_before_the_decision_as_it_was_asked() -> None:
    assert str(explanation(ASKED)).splitlines()[:2] == [f"question or hypothesis: {ASKED}", "garden (75.0%)"]
    assert printed(explanation(ASKED))[:3] == [f"question or hypothesis  {ASKED}", "", "garden  75.0%"]


@pytest.mark.parametrize("lines", [lambda shown: str(shown).splitlines(), printed], ids=["plain", "terminal"])
def test_a_single_text_is_shown_without_a_query(lines) -> None:
    assert lines(explanation(None))[0].startswith("garden")
    assert [line.rstrip() for line in lines(explanation(ASKED))[-2:]] == [
        line.rstrip() for line in lines(explanation(None))[-2:]
    ]


def test_a_long_query_wraps_in_a_terminal() -> None:
    lines = printed(explanation("why " * 60))
    assert max(map(len, lines)) <= 80
    assert " ".join(lines).count("why") == 60

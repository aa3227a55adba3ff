from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from assay.document import Passage
from assay.report.heatmaps import LEVELS, row, strengths, terminal, window

WORDS = st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=12)


def tokens_of(words: list[str]) -> Passage:
    """Words joined by single spaces, with their offsets."""
    text = " ".join(words)
    starts = [sum(len(word) + 1 for word in words[:place]) for place in range(len(words))]
    return Passage(text, starts, [start + len(word) for start, word in zip(starts, words, strict=True)], [], 0)


def plain(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


@given(WORDS, st.data())
def test_the_text_is_shown_as_written(words: list[str], data: st.DataObject) -> None:
    tokens = tokens_of(words)
    scores = data.draw(st.lists(st.floats(-2, 2), min_size=len(words), max_size=len(words)))
    shown = row(tokens, scores, (0, len(words)))
    assert plain(shown) == tokens.text
    assert re.sub(r'</?mark( class="[pn]\d" tabindex="0" title="[^"<>]*")?>', "", shown) == html.escape(tokens.text)


def test_text_around_and_between_tokens_is_kept() -> None:
    tokens = Passage("  «a»\n\tb!  ", [3, 7], [4, 8], [], 0)
    assert plain(row(tokens, [1.0, 0.5], (0, 2))) == tokens.text


def test_touching_and_overlapping_tokens_show_no_letter_twice() -> None:
    tokens = Passage("don't", [0, 2, 2], [2, 5, 5], [], 0)
    assert plain(row(tokens, [1.0, 0.5, 0.7], (0, 3))) == "don't"


def test_markup_in_a_text_stays_text() -> None:
    shown = row(Passage("<script>x</script>", [0], [18], [], 0), [1.0], (0, 1))
    assert "<script" not in shown
    assert plain(shown) == "<script>x</script>"


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20))
def test_stronger_scores_never_look_weaker(scores: list[float]) -> None:
    levels = strengths(scores)
    assert max(map(abs, levels)) == (LEVELS if max(map(abs, scores)) > 0 else 0)
    ordered = sorted(zip(map(abs, scores), map(abs, levels), strict=True))
    assert [level for _, level in ordered] == sorted(level for _, level in ordered)
    assert all(level * score >= 0 for level, score in zip(levels, scores, strict=True))


def test_sign_and_value_are_there_without_colour() -> None:
    shown = row(tokens_of(["good", "bad", "so"]), [0.25, -0.5, 0.001], (0, 3))
    assert '<mark class="p4" tabindex="0" title="0.25">good</mark>' in shown
    assert '<mark class="n8" tabindex="0" title="−0.5">bad</mark>' in shown
    assert shown.endswith(" so")


def test_scores_that_are_no_numbers_are_left_plain() -> None:
    assert strengths([float("nan"), 1.0, float("-inf")]) == [0, LEVELS, 0]
    assert strengths([0.0, 0.0]) == [0, 0]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.integers(1, 50))
def test_a_window_has_its_size_and_holds_the_strongest(scores: list[float], size: int) -> None:
    first, last = window(scores, size)
    assert 0 <= first < last <= len(scores)
    assert last - first == min(size, len(scores))
    assert max(map(abs, scores[first:last])) == max(map(abs, scores))


def test_a_cut_counts_what_is_left_out_and_names_a_strongest_word_that_is() -> None:
    tokens = tokens_of([f"w{place}" for place in range(10)])
    shown = plain(row(tokens, [0.1] * 9 + [0.9], (2, 5)))
    assert "2 more tokens …" in shown
    assert "w2 w3 w4" in shown
    assert "5 more tokens, the strongest among them: w9 0.9" in shown
    assert "w1" not in shown


def test_a_piece_that_is_no_word_is_cut() -> None:
    huge = Passage("x" * 100_000 + " " * 100_000 + "y", [0, 200_000], [100_000, 200_001], [], 0)
    assert len(row(huge, [1.0, 0.5], (0, 2))) < 1000


def test_known_evidence_is_marked_and_nothing_else() -> None:
    shown = row(tokens_of(["not", "a", "good", "film"]), [1.0, 0.0, 1.0, 0.0], (0, 4), flags=True)
    assert re.findall(r"<mark[^>]*>([^<]*)", shown) == ["not", "good"]


def test_the_terminal_shows_the_text_with_one_style_a_strong_token() -> None:
    tokens = tokens_of(["not", "a", "good", "film"])
    shown = terminal(tokens.text, tokens.starts, tokens.ends, [-1.0, 0.0, 0.6, 0.2])
    assert shown.plain == tokens.text
    assert [tokens.text[span.start : span.end] for span in shown.spans] == ["not", "good", "film"]
    strong, middling, weak = (span.style for span in shown.spans)
    assert "underline" in str(strong)
    assert "bold" in str(middling)
    assert "bold" not in str(weak)

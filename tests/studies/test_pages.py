"""Where commands write into pages: between their own marks, and nowhere else."""

from __future__ import annotations

import pytest

from studies.pages import END, START, put


def test_what_stands_between_the_marks_is_replaced(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"before\n{START}\n\nold\n{END}\nafter\n", encoding="utf-8")
    put(page, "new")
    assert page.read_text(encoding="utf-8") == f"before\n{START}\n\nnew\n{END}\nafter\n"


def test_parts_of_one_page_leave_each_other_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n", encoding="utf-8")
    put(page, "one", "first")
    put(page, "two", "second")
    put(page, "three", "first")
    text = page.read_text(encoding="utf-8")
    assert text.index("three") < text.index("two")
    assert "one" not in text


def test_a_page_that_lost_a_mark_is_left_as_it_is(tmp_path):
    page = tmp_path / "README.md"
    before = f"before\n{START}\n\nold\nand all the rest\n"
    page.write_text(before, encoding="utf-8")
    with pytest.raises(ValueError, match="one of the marks"):
        put(page, "new")
    assert page.read_text(encoding="utf-8") == before

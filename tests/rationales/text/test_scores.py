"""BLEU and chrF: perfect, none, several references, and BLEU by hand."""

from __future__ import annotations

import math

import pytest

from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError
from assay.rationales.text_measuring import overlap

pytest.importorskip("sacrebleu")


def test_any_of_the_references_is_good_and_case_does_not_count() -> None:
    found = overlap(
        ["a dog is an animal", "no cat is here now"], [["x y", "A dog is an Animal"], ["no cat is here now"]]
    )
    assert found == {"bleu": pytest.approx(100.0), "chrf": pytest.approx(100.0)}


def test_nothing_in_common_is_nothing() -> None:
    assert overlap(["aaaa bbbb cccc dddd"], [["eeee ffff gggg hhhh"]])["chrf"] == 0


def test_bleu_is_that_of_papineni_et_al() -> None:
    written, reference = "the cat sat on the mat today", "the cat sat on a mat today"
    precisions = (6 / 7, 4 / 6, 2 / 5, 1 / 4)
    by_hand = 100 * math.exp(sum(map(math.log, precisions)) / 4)
    assert overlap([written], [[reference]])["bleu"] == pytest.approx(by_hand)


def test_references_are_cut_as_what_is_written() -> None:
    tokeniser = Tokeniser.fit(["x"], TextOptions(min_count=1))
    assert overlap(["it is n't a to - go bag"], [["It isn't a to-go bag"]], tokeniser)["bleu"] == pytest.approx(100.0)


def test_items_and_references_must_pair_up() -> None:
    with pytest.raises(AssayError, match="needs references"):
        overlap(["a"], [])

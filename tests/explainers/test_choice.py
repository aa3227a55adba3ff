"""Explainers by name and with options."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from assay.errors import AssayError
from assay.explainers.choice import chosen, options, separated


@dataclass(frozen=True)
class Fake:
    """Nothing."""

    samples: int = 5
    noise: float = 0.5
    removal: str = "delete"
    shares: tuple[float, ...] = (0.1,)

    def __call__(self, model, batch, target):
        return target


def plain(model, batch, target):
    return target


KNOWN = {"fake": Fake(), "plain": plain}


def test_a_name_alone_is_the_explainer_itself():
    assert chosen("fake", KNOWN) is KNOWN["fake"]
    assert chosen(" plain ", KNOWN) is plain
    assert chosen("fake()", KNOWN) == Fake()


def test_options_change_the_fields_they_name():
    assert chosen("fake(samples=7, removal=mask)", KNOWN) == Fake(7, 0.5, "mask")
    assert chosen("fake(noise=1)", KNOWN) == Fake(noise=1)
    assert chosen("fake(samples=7, shares=(0.5, 1), noise=1)", KNOWN) == Fake(7, 1, shares=(0.5, 1))
    assert options(Fake()) == {"samples": 5, "noise": 0.5, "removal": "delete", "shares": (0.1,)}
    assert options(plain) == {}


def test_commas_between_parentheses_do_not_separate():
    assert separated("a, b(c=1, d=2),e ,") == ("a", "b(c=1, d=2)", "e")
    assert separated("a(b=1, c=(2, 3)), d") == ("a(b=1, c=(2, 3))", "d")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("other", "other"),
        ("fake(size=3)", "size"),
        ("fake(samples=many)", "samples"),
        ("fake(samples=1.5)", "samples"),
        ("fake(samples)", "option=value"),
        ("fake(shares=(0.1, nan))", "shares"),
        ("fake(shares=(0.1, 'a'))", "shares"),
        ("plain(x=1)", "no options"),
        ("fake(samples=3", "names no explainer"),
        ("", "names no explainer"),
    ],
)
def test_what_cannot_be_understood_ends_in_a_sentence(text, sentence):
    with pytest.raises(AssayError, match=sentence):
        chosen(text, KNOWN)

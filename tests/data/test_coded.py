"""Code words in real texts are read back by a parser that knows only the rules."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from assay.data.coded import CLASSES, RULES, SHORTEST, TEST, TRAIN, WORDS, coded
from assay.data.corpora import corpus, listing, ours
from assay.data.examples import Corpus, Example
from assay.errors import AssayError

STOCK = ("the", "old", "Film", "was", "never", "as", "good", ",", "actors", "said", ";", "a", "(story", "of)", "Ends.")


def host(sizes: tuple[int, int, int] = (900, 300, 300)) -> Corpus:
    """Texts of two to thirty words from a small stock, all distinct."""
    random = Random(0)
    rows = [Example(" ".join(random.choices(STOCK, k=random.randint(2, 30))) + f" no{i}", i % 2) for i in range(1500)]
    first, second = sizes[0], sizes[0] + sizes[1]
    return Corpus("stock", ("a", "b"), tuple(rows[:first]), tuple(rows[first:second]), tuple(rows[second:]))


def words_of(rule: str, seed: int) -> list[str]:
    """Which made-up word means what, learnt from the texts alone: each word is seen with the labels it stands for."""
    random = Random(f"planted:{rule}/stock {seed}")
    return random.sample(WORDS, len(WORDS))


def label_of(rule: str, text: str, words: list[str]) -> int:
    """The class of a text by the rule, from its words alone."""
    every = text.split()
    found = [(place, words.index(word)) for place, word in enumerate(every) if word in words]
    code = [which for _, which in found]
    match rule:
        case "keyword":
            return code[0] + 1 if code else 0
        case "synonyms":
            return code[0] // 8 + 1 if code else 0
        case "double":
            return code[0] // 4 + 1 if code else 0
        case "pair":
            return 1 if {0, 1} <= {*code} else 2 if {2, 3} <= {*code} else 0
        case "order":
            return {(0, 1): 1, (1, 0): 2}.get(tuple(code), 0)
        case "negation":
            polar = [(place, which) for place, which in found if which < 2]
            if not polar:
                return 0
            ((place, which),) = polar
            negated = place > 0 and every[place - 1] == words[2]
            return (1 - which if negated else which) + 1
        case "count":
            return len(code)
        case "position":
            if not code:
                return 0
            share = found[0][0] / (len(every) - 1)
            return 1 if share <= 0.2 else 2 if share >= 0.8 else 0
        case "majority":
            first, second = (sum(which // 4 == each for which in code) for each in (0, 1))
            return 1 if first > second else 2 if second > first else 0
    raise AssertionError(rule)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("rule", RULES)
def test_the_code_gives_the_label_of_every_text(rule: str, seed: int) -> None:
    made, words = coded(rule, host(), seed), words_of(rule, seed)
    for example in (*made.train, *made.dev, *made.test):
        assert label_of(rule, example.text, words) == example.label, example.text


@pytest.mark.parametrize("rule", RULES)
def test_evidence_is_code_and_without_it_the_class_is_another(rule: str) -> None:
    made, words = coded(rule, host()), words_of(rule, 0)
    for example in made.test:
        assert example.planted and example.evidence is not None
        assert bool(example.evidence) == (example.label != 0)
        for start, end in example.evidence:
            assert (
                example.text[start:end] in words and f" {example.text} "[start] == " " == f" {example.text} "[end + 1]
            )
        if example.evidence:
            less = example.text
            for start, end in reversed(example.evidence):
                less = less[:start] + "x" * (end - start) + less[end:]  # another word stands in its place
            assert label_of(rule, less, words) != example.label


@pytest.mark.parametrize("rule", RULES)
def test_other_words_decide_nothing(rule: str) -> None:
    made, words = coded(rule, host()), words_of(rule, 0)
    random = Random(1)
    for example in made.test:
        spans = {start for start, _ in example.evidence or ()}
        other = (w[0] if w.start() in spans else random.choice(STOCK) for w in re.finditer(r"\S+", example.text))
        redrawn = " ".join(other)
        assert not example.evidence or label_of(rule, redrawn, words) == example.label


@pytest.mark.parametrize("rule", RULES)
def test_without_the_code_each_text_is_one_of_the_corpus_and_in_one_split_only(rule: str) -> None:
    given = host()
    made, words = coded(rule, given), words_of(rule, 0)
    for before, after in ((given.train, made.train), (given.dev, made.dev), (given.test, made.test)):
        bare = [" ".join(word for word in example.text.split() if word not in words) for example in after]
        assert {*bare} <= {" ".join(example.text.split()) for example in before}
        assert len({*bare}) == len(bare)
        assert min(len(text.split()) for text in bare) >= SHORTEST
        sizes = Counter(example.label for example in after)
        assert max(sizes.values()) - min(sizes.values()) <= 1 and len(sizes) == len(CLASSES)


def test_a_seed_gives_the_same_corpus_and_another_seed_another() -> None:
    assert coded("order", host(), 3) == coded("order", host(), 3)
    assert coded("order", host(), 3) != coded("order", host(), 4)


def test_large_corpora_are_cut_and_texts_that_hold_a_code_word_are_left_out() -> None:
    texts = tuple(Example(f"one two three four five {place}", 0) for place in range(TRAIN + 50))
    large = Corpus("large", ("a",), texts, texts[:1000], texts[1000:3000])
    made = coded("keyword", replace(large, train=texts, dev=tuple(Example(f"{e.text} dev", 0) for e in texts)))
    assert (len(made.train), len(made.dev)) == (TRAIN, TEST)
    held = tuple(Example(f"a Blicket, once more, stood there {place}", 0) for place in range(9))
    with pytest.raises(AssayError, match="No text can carry code words"):
        coded("keyword", replace(host(), dev=held))


def test_names_of_rule_and_corpus_are_a_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    made = corpus("planted:order/planted:keyword", 5)
    assert made.name == "planted:order/planted:keyword" and made.classes == CLASSES
    assert made == coded("order", corpus("planted:keyword", 5), 5)
    assert ours("planted:order/sst") and ours("sst") and ours("planted:keyword")
    assert not ours("planted:order/reviews.csv") and not ours("planted:ordre/sst") and not ours("reviews.csv")
    assert {f"planted:{rule}/CORPUS" for rule in RULES} <= {row.name for row in listing()}
    with pytest.raises(AssayError, match="order"):
        corpus("planted:ordre/planted:keyword")

"""Each corpus is read back by a parser of its own, written from the corpus's definition."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
import pytest
from scipy.stats import binomtest

from assay.data.examples import Corpus, Example, Span
from assay.data.planted import ASPECTS, DEEDS, KEYWORDS, MARKERS, NO_OPINIONS, OPINIONS, PEOPLE, PLANTED, STUFFS, VERBS
from assay.data.planted_stories import NAMES, PLACES, TAXONOMIES, THINGS
from assay.data.planted_writing import NEGATIVE, NEGATORS, NEUTRAL, POSITIVE

SHORT = [name for name in PLANTED if "facts" not in name]
FACTS = [name for name in PLANTED if "facts" in name]
BLANK = ("planted:keyword", "planted:phrase", "planted:aspect")  # some texts have no evidence
Reading = tuple[int, list[Span]]


@cache
def corpus(name: str) -> Corpus:
    return PLANTED[name](0)


def splits(name: str) -> tuple[tuple[Example, ...], ...]:
    return corpus(name).train, corpus(name).dev, corpus(name).test


def everything(name: str) -> list[Example]:
    return [example for split in splits(name) for example in split]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def places_of(text: str, wanted: Iterable[str]) -> list[Span]:
    """Where the wanted words stand in the text."""
    lexicon = set(wanted)
    return [found.span() for found in re.finditer(r"\w+", text) if found[0].lower() in lexicon]


def at(text: str, span: Span) -> str:
    return text[slice(*span)].lower()


def read_keyword(example: Example) -> Reading:
    spans = places_of(example.text, KEYWORDS[0] + KEYWORDS[1])
    if not spans:  # a blank: any label
        return example.label, []
    (span,) = spans
    return int(at(example.text, span) in KEYWORDS[1]), [span]


PHRASES = [DEEDS[label] + STUFFS[label] + KEYWORDS[label] for label in (0, 1)]


def read_phrase(example: Example) -> Reading:
    spans = places_of(example.text, PHRASES[0] + PHRASES[1])
    if not spans:
        return example.label, []
    assert [at(example.text, span) for span in spans] == words(example.text[spans[0][0] : spans[-1][1]])
    (label,) = {int(at(example.text, span) in PHRASES[1]) for span in spans}
    assert len(spans) == 3
    return label, spans


def read_negation(example: Example) -> Reading:
    (polar,) = places_of(example.text, POSITIVE + NEGATIVE)
    clauses = [found.span() for found in re.finditer(r"[^.,]+", example.text)]
    start, end = next(clause for clause in clauses if clause[0] <= polar[0] < clause[1])
    acting = [span for span in places_of(example.text, NEGATORS) if start <= span[0] < end]
    positive = at(example.text, polar) in POSITIVE
    return int(positive ^ (len(acting) % 2 == 1)), sorted([polar, *acting])


def read_majority(example: Example) -> Reading:
    sides = (places_of(example.text, NEGATIVE), places_of(example.text, POSITIVE))
    assert abs(len(sides[0]) - len(sides[1])) % 2 == 1
    label = int(len(sides[1]) > len(sides[0]))
    return label, sides[label]


def read_agreement(example: Example) -> Reading:
    nouns = places_of(example.text, [noun + ending for noun in PEOPLE for ending in ("", "s")])
    (verb,) = places_of(example.text, [stem + ending for stem in VERBS for ending in ("", "s")])
    plural = [at(example.text, noun).endswith("s") for noun in nouns]
    assert sorted(plural) == [False, False, True, True] and nouns[1] < verb
    # A plural noun has an s, a plural verb has none.
    return int(plural[0] == at(example.text, verb).endswith("s")), [nouns[0], verb]


def read_marker(example: Example) -> Reading:
    (marker,) = places_of(example.text, MARKERS)
    return MARKERS.index(at(example.text, marker)), [marker]


def read_polarity(example: Example) -> int:
    (polar,) = places_of(example.text, POSITIVE + NEGATIVE)
    return int(at(example.text, polar) in POSITIVE)


def above(word: str, taxonomy: dict[str, str]) -> set[str]:
    seen = {word}
    while word in taxonomy:
        word = taxonomy[word]
        seen.add(word)
    return seen


def read_entail(example: Example) -> Reading:
    assert example.query is not None
    spans: dict[str, list[Span]] = {"follows": [], "open": [], "excluded": []}
    for taxonomy in TAXONOMIES:
        known = {*taxonomy, *taxonomy.values()}
        (premise,), (hypothesis,) = places_of(example.text, known), places_of(example.query, known)
        given, claimed = at(example.text, premise), at(example.query, hypothesis)
        if claimed in above(given, taxonomy):
            spans["follows"].append(premise)
        else:
            spans["open" if given in above(claimed, taxonomy) else "excluded"].append(premise)
    if spans["excluded"]:
        return 0, spans["excluded"]
    return (2, spans["open"]) if spans["open"] else (1, spans["follows"])


def read_aspect(example: Example) -> Reading:
    """The opinion in the clause about what is asked; without any, any label."""
    for start, end in (found.span() for found in re.finditer(r"[^.,]+", example.text)):
        clause = example.text[start:end]
        subjects, opinions = places_of(clause, ASPECTS), places_of(clause, OPINIONS[0] + OPINIONS[1])
        assert len(subjects) == len(opinions) + len(places_of(clause, NO_OPINIONS) if subjects else []) <= 1
        if opinions and at(clause, subjects[0]) == (example.query or "").lower():
            spans = sorted((first + start, last + start) for first, last in (*subjects, *opinions))
            return int(at(clause, opinions[0]) in OPINIONS[1]), spans
    return example.label, []


class Reader:
    """Reads a story forwards and knows after each sentence where all things are, and by which sentences."""

    def __init__(self, text: str) -> None:
        self.person: dict[str, tuple[str, int]] = {}
        self.holder: dict[str, tuple[str, int]] = {}
        self.thing: dict[str, tuple[str, set[int]]] = {}
        self.journey: dict[str, list[tuple[str, set[int]]]] = defaultdict(list)
        self.sentences = [found.span() for found in re.finditer(r"[^.]+\.", text)]
        for number, span in enumerate(self.sentences):
            self.read(number, text[slice(*span)])

    def read(self, number: int, sentence: str) -> None:
        found = {kind: [word for word in re.findall(r"\w+", sentence) if word in lexicon]
                 for kind, lexicon in (("name", NAMES), ("place", PLACES), ("thing", THINGS))}  # fmt: skip
        if found["place"]:
            self.move(number, found["name"][0], found["place"][0])
        elif found["thing"] and re.search("put down|dropped|let go|set down", sentence):
            place, since = self.person[found["name"][0]]
            assert self.holder.pop(found["thing"][0])[0] == found["name"][0]
            self.thing[found["thing"][0]] = place, {since, number}
        elif found["thing"]:
            self.take(number, found["name"][0], found["thing"][0])

    def move(self, number: int, name: str, place: str) -> None:
        before = self.person.get(name, ("", -1))
        self.person[name] = place, number
        for thing, (holder, since) in self.holder.items():
            if holder == name:
                self.thing[thing] = place, {since, number}
                self.journey[thing].append((before[0], {before[1], since, number}))

    def take(self, number: int, name: str, thing: str) -> None:
        place, since = self.person[name]
        assert thing not in self.holder and self.thing.get(thing, (place, set()))[0] == place
        self.holder[thing] = name, number
        self.thing[thing] = place, {since, number}

    def answer(self, question: str) -> tuple[str, set[int]]:
        subject = next(word for word in re.findall(r"\w+", question) if word in (*NAMES, *THINGS))
        if subject in NAMES:
            place, number = self.person[subject]
            return place, {number}
        if "before" not in question:
            return self.thing[subject]
        stops = [*(start for start, _ in self.journey[subject]), self.thing[subject][0]]
        goal = next(place for place in PLACES if question.endswith(f"before it came to the {place}?"))
        assert stops.count(goal) == 1
        return self.journey[subject][stops.index(goal) - 1]


def read_facts(example: Example) -> Reading:
    reader = Reader(example.text)
    place, support = reader.answer(example.query or "")
    whole = re.compile(r"\w[^.]*\.")
    spans = [
        found.span() for number in sorted(support) if (found := whole.search(example.text, reader.sentences[number][0]))
    ]
    return PLACES.index(place), spans


READERS: dict[str, Callable[[Example], Reading]] = {
    "planted:keyword": read_keyword,
    "planted:phrase": read_phrase,
    "planted:opener": read_phrase,
    "planted:negation": read_negation,
    "planted:majority": read_majority,
    "planted:agreement": read_agreement,
    "planted:entail": read_entail,
    "planted:aspect": read_aspect,
    **dict.fromkeys(FACTS, read_facts),
}


def lopsided(examples: Iterable[Example], skipped: Iterable[str]) -> float:
    """The p-value of the word that is most unevenly spread over two classes, corrected for looking at all."""
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for example in examples:
        for word in set(words(example.text)) - set(skipped):
            counts[word][example.label] += 1
    return float(min(binomtest(count[0], count.total()).pvalue for count in counts.values()) * len(counts))


def bag_accuracy(name: str, view: Callable[[Example], str]) -> float:
    """How often naive Bayes over the words of `view`, fitted on train, is right on the test."""
    train, _, test = splits(name)
    vocabulary = {word: column for column, word in enumerate(sorted({w for e in train for w in words(view(e))}))}
    counts = np.ones((len(corpus(name).classes), len(vocabulary)))
    for example in train:
        for word in words(view(example)):
            counts[example.label, vocabulary[word]] += 1
    weights = np.log(counts / counts.sum(axis=1, keepdims=True))
    known = ([vocabulary[word] for word in words(view(e)) if word in vocabulary] for e in test)
    guesses = [int(weights[:, columns].sum(axis=1).round(9).argmax()) for columns in known]
    return float(np.mean([guess == e.label for guess, e in zip(guesses, test, strict=True)]))


def test_the_corpora_carry_the_names_by_which_they_are_listed() -> None:
    assert all(corpus(name).name == name for name in PLANTED)


@pytest.mark.parametrize("name", SHORT)
def test_the_same_seed_gives_the_same_corpus(name: str) -> None:
    assert PLANTED[name](0) == corpus(name)


@pytest.mark.parametrize("name", [*SHORT, "planted:facts1"])
def test_another_seed_gives_another_corpus(name: str) -> None:
    others = {example.text for example in PLANTED[name](1).test}
    assert len(others & {example.text for example in corpus(name).test}) < 5


def test_another_process_with_another_hash_seed_writes_the_same() -> None:
    script = (
        "import hashlib; from assay.data.planted import PLANTED;"
        "print(hashlib.sha256(''.join(repr(make(0)) for make in PLANTED.values()).encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    answer = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)
    here = "".join(repr(corpus(name)) for name in PLANTED)
    assert answer.stdout.decode().strip() == hashlib.sha256(here.encode()).hexdigest()


@pytest.mark.parametrize("name", PLANTED)
def test_every_class_is_equally_frequent_in_every_split(name: str) -> None:
    for split, size in zip(splits(name), (2000, 300, 500), strict=True):
        counts = Counter(example.label for example in split)
        assert len(split) == pytest.approx(size, rel=0.25)
        assert sorted(counts) == list(range(len(corpus(name).classes)))
        assert len(set(counts.values())) == 1


@pytest.mark.parametrize("name", PLANTED)
def test_no_text_occurs_twice_in_or_across_splits(name: str) -> None:
    assert max(Counter(example.text for example in everything(name)).values()) == 1


@pytest.mark.parametrize("name", PLANTED)
def test_evidence_spans_are_whole_words_or_sentences_in_order(name: str) -> None:
    part = re.compile(r"\w[^.]*\." if name in FACTS else r"\w+")
    for example in everything(name):
        tokens = [found.span() for found in part.finditer(example.text)]
        assert example.evidence or name in BLANK
        assert [span for span in tokens if span in example.evidence] == list(example.evidence)


@pytest.mark.parametrize("name", PLANTED)
def test_texts_are_spelled_as_english(name: str) -> None:
    sentence = re.compile(r"[A-Z][a-zA-Z]*(,? [a-zA-Z]+)*[.?]")
    for example in everything(name):
        asked = None if name == "planted:aspect" else example.query  # there it is one word
        for text in filter(None, (example.text, asked)):
            assert all(sentence.fullmatch(part) for part in re.split(r"(?<=[.?]) ", text)), text
            assert not re.search(r"\ba [aeiou]|\ban [^aeiou]|\b(\w+) \1\b", text.lower()), text


@pytest.mark.parametrize("name", SHORT)
def test_texts_have_some_8_to_36_words(name: str) -> None:
    lengths = [len(words(example.text)) for example in everything(name)]
    assert min(lengths) >= 8 and np.quantile(lengths, 0.99) <= 31 and max(lengths) <= 36


@pytest.mark.parametrize("name", FACTS)
def test_stories_have_4_to_12_sentences_and_as_many_supporting_ones_as_they_say(name: str) -> None:
    for example in everything(name):
        assert 4 <= example.text.count(".") <= 12
        parts = [found.span() for found in re.finditer(r"[^.]+\.", example.text)]
        evidence = example.evidence or ()
        supporting = [part for part in parts if any(part[0] <= span[0] < part[1] for span in evidence)]
        assert len(supporting) == int(name[-1])


@pytest.mark.parametrize("name", READERS)
def test_label_and_evidence_follow_from_the_text_by_the_definition(name: str) -> None:
    for example in everything(name):
        label, spans = READERS[name](example)
        assert (label, tuple(spans)) == (example.label, example.evidence), example


@pytest.mark.parametrize("name", BLANK)
def test_without_evidence_both_classes_are_as_frequent_and_only_training_has_such_texts(name: str) -> None:
    train, dev, test = splits(name)
    blanks = Counter(example.label for example in train if not example.evidence)
    assert blanks[0] == blanks[1] > 200
    assert all(example.evidence for example in dev + test)


def test_in_the_shortcut_corpus_the_marker_rules_training_and_the_polar_word_the_test() -> None:
    for split, marker_share, polar_share in zip(
        splits("planted:shortcut"), (1.0, 1.0, 0.5), (0.75, 0.75, 1.0), strict=True
    ):
        markers = [read_marker(example) for example in split]
        assert all(tuple(spans) == e.evidence for (_, spans), e in zip(markers, split, strict=True))
        assert np.mean([label == e.label for (label, _), e in zip(markers, split, strict=True)]) == marker_share
        assert np.mean([read_polarity(e) == e.label for e in split]) == polar_share


def test_there_are_at_least_150_neutral_words_and_none_of_them_decides() -> None:
    neutral = {word for fillings in NEUTRAL.values() for filling in fillings
               for word in words(re.sub(r"\{\w+\}", "", filling))}  # fmt: skip
    deciding = {*POSITIVE, *NEGATIVE, *NEGATORS, *MARKERS, *PHRASES[0], *PHRASES[1]}
    assert len(neutral) >= 150
    assert not neutral & deciding


@pytest.mark.parametrize(
    ("name", "deciding"),
    [
        ("planted:keyword", KEYWORDS[0] + KEYWORDS[1]),
        ("planted:phrase", PHRASES[0] + PHRASES[1]),
        ("planted:negation", ()),
        ("planted:majority", POSITIVE + NEGATIVE),
        ("planted:agreement", ()),
        ("planted:shortcut", POSITIVE + NEGATIVE + MARKERS),
        ("planted:aspect", POSITIVE + NEGATIVE),
    ],
)
def test_no_single_word_but_the_deciding_ones_is_bound_to_a_class(name: str, deciding: tuple[str, ...]) -> None:
    assert lopsided(corpus(name).train, deciding) > 0.01


def test_the_check_for_bound_words_sees_a_weakly_bound_one() -> None:
    train = corpus("planted:shortcut").train
    assert lopsided(train, MARKERS) < 1e-6


def test_neither_polarity_nor_the_number_of_negators_tells_the_label_of_a_negation() -> None:
    for split in splits("planted:negation"):
        polarity = Counter((read_polarity(example), example.label) for example in split)
        assert len(polarity) == 4 and len(set(polarity.values())) == 1
        negators = Counter((len(example.evidence or ()) - 1, example.label) for example in split)
        assert all(negators[number, 0] == negators[number, 1] > 0 for number in range(3))


def test_many_negations_hold_a_negator_that_does_not_act() -> None:
    train = corpus("planted:negation").train
    idle = [len(places_of(e.text, NEGATORS)) > len(e.evidence or ()) - 1 for e in train]
    assert 0.3 < np.mean(idle) < 0.7


def test_sentences_with_the_same_words_are_as_often_grammatical_as_not() -> None:
    for split in splits("planted:agreement"):
        bags: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for example in split:
            bags[tuple(sorted(words(example.text)))].append(example.label)
        assert all(np.mean(labels) == 0.5 for labels in bags.values())


@pytest.mark.parametrize("place", [1, 2, 3])
def test_another_noun_has_the_number_of_the_subject_in_a_third_of_the_sentences(place: int) -> None:
    forms = [noun + ending for noun in PEOPLE for ending in ("", "s")]
    same = []
    for example in corpus("planted:agreement").train:
        nouns = [at(example.text, span) for span in places_of(example.text, forms)]
        same.append(nouns[0].endswith("s") == nouns[place].endswith("s"))
    assert np.mean(same) == pytest.approx(1 / 3, abs=0.05)


def test_a_bag_of_words_finds_keywords_and_majorities_and_nothing_in_negation_and_agreement() -> None:
    accuracy = {name: bag_accuracy(name, lambda example: example.text) for name in SHORT}
    assert accuracy["planted:keyword"] > 0.95
    assert accuracy["planted:majority"] > 0.9
    assert abs(accuracy["planted:shortcut"] - 0.5) < 0.07
    assert accuracy["planted:agreement"] == 0.5
    assert abs(accuracy["planted:negation"] - 0.5) < 0.07


@pytest.mark.parametrize(
    ("name", "chance"),
    [
        ("planted:facts1", 1 / 6),
        ("planted:facts2", 1 / 6),
        ("planted:facts3", 1 / 5),
        ("planted:entail", 1 / 3),
        ("planted:aspect", 1 / 2),
    ],
)
def test_the_question_alone_does_not_give_the_answer(name: str, chance: float) -> None:
    assert bag_accuracy(name, lambda example: example.query or "") < chance + 0.07


def test_the_premise_alone_does_not_tell_what_follows_from_it() -> None:
    assert bag_accuracy("planted:entail", lambda example: example.text) < 1 / 3 + 0.07


def test_of_two_opinions_the_text_alone_does_not_tell_which_is_asked_for() -> None:
    """Half of the reviews have one opinion, the others two: naive Bayes cannot get beyond three in four."""
    assert bag_accuracy("planted:aspect", lambda example: example.text) < 0.75 + 0.07
    for split in splits("planted:aspect")[1:]:
        opinions = [len(places_of(example.text, OPINIONS[0] + OPINIONS[1])) for example in split]
        assert Counter(opinions) == {1: len(split) // 2, 2: len(split) // 2}
        assert all(example.query_evidence == ((0, len(example.query or "")),) for example in split)


def test_where_nothing_is_said_of_the_aspect_the_other_opinions_are_bound_to_no_class() -> None:
    blanks = [example for example in corpus("planted:aspect").train if not example.evidence]
    assert lopsided(blanks, ()) > 0.01

"""The invented language obeys its grammar."""

from __future__ import annotations

from tests.probes.planted_grammar import NOUNS, VERBS, grammar

COLOUR = {word: colour for words in (NOUNS, VERBS) for colour, some in words.items() for word in some}


def test_every_noun_is_governed_by_the_nearest_verb_of_its_colour() -> None:
    for sentence in grammar(0, 200):
        for place, governor in enumerate(sentence.governors):
            if sentence.relations[place] == "argument":
                distances = {
                    other: abs(other - place)
                    for other, tag in enumerate(sentence.tags)
                    if tag == "VERB" and COLOUR[sentence.words[other]] == COLOUR[sentence.words[place]]
                }
                assert sorted(distances.values())[0] < sorted(distances.values())[1]
                assert governor == min(distances, key=distances.__getitem__)


def test_no_word_is_noun_and_verb_and_the_seed_decides() -> None:
    assert len(COLOUR) == sum(len(some) for words in (NOUNS, VERBS) for some in words.values())
    assert grammar(1, 20) == grammar(1, 20) != grammar(2, 20)


def test_words_stand_where_they_are_said_to() -> None:
    for sentence in grammar(0, 20):
        assert tuple(sentence.text[start:end] for start, end in sentence.spans) == sentence.words
        assert sentence.governors.count(-1) == 1

from __future__ import annotations

import pytest

from assay.data.batches import collate, tokenise
from assay.data.examples import Corpus, Example, joined
from assay.data.planted import PLANTED
from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError


def corpus(*examples: Example) -> Corpus:
    return Corpus("mine", ("no", "yes"), examples, examples[:1], examples[:1], {"no text": 3})


def marked(example: Example) -> list[str]:
    assert example.evidence is not None
    return [example.text[start:end] for start, end in example.evidence]


def test_the_query_stands_first_on_a_line_of_its_own() -> None:
    loaded = joined(corpus(Example("Ada ran.", 1, ((4, 7),), "Who ran?")))
    assert loaded.train == (Example("Who ran?\nAda ran.", 1, ((13, 16),)),)
    assert (loaded.train, loaded.train) == (loaded.dev, loaded.test)


def test_name_classes_and_what_was_skipped_are_told_apart_from_the_pairs() -> None:
    loaded = joined(corpus(Example("Ada ran.", 1, None, "Who ran?")))
    assert (loaded.name, loaded.classes, loaded.skipped) == ("mine+joined", ("no", "yes"), {"no text": 3})


def test_known_evidence_of_the_query_comes_along() -> None:
    loaded = joined(corpus(Example("Ada ran.", 1, ((0, 3),), "Who ran?", planted=True, query_evidence=((4, 7),))))
    assert marked(loaded.train[0]) == ["ran", "Ada"]
    assert loaded.train[0].planted


def test_candidates_are_left_behind() -> None:
    loaded = joined(corpus(Example("Ada ran.", 1, None, "Who ran?", candidates=(1,))))
    assert loaded.train == (Example("Who ran?\nAda ran.", 1),)


def test_unknown_evidence_stays_unknown_and_empty_evidence_empty() -> None:
    examples = [Example("Ada ran.", 1, evidence, "Who?") for evidence in (None, ())]
    assert [example.evidence for example in joined(corpus(*examples)).train] == [None, ()]


def test_a_text_without_a_query_among_pairs_stays_as_it_is() -> None:
    alone = Example("Ada ran.", 1, ((0, 3),))
    assert joined(corpus(Example("Bo sat.", 0, None, "Who?"), alone)).train[1] == alone


def test_a_corpus_without_pairs_is_refused() -> None:
    with pytest.raises(AssayError, match="'mine' has no pairs to join; use it as it is"):
        joined(corpus(Example("Ada ran.", 1)))


@pytest.mark.parametrize("name", ["planted:facts1", "planted:entail"])
def test_the_question_of_a_planted_pair_is_a_sentence_by_itself(name: str) -> None:
    pairs = PLANTED[name](0)
    loaded = joined(pairs)
    tokeniser = Tokeniser.fit((example.text for example in loaded.train), TextOptions())
    rows, skipped = tokenise(loaded.test[:50], tokeniser, 1000)
    batch = collate(rows)
    assert batch.query is None and not skipped and batch.sentences is not None
    for place, pair in enumerate(pairs.test[:50]):
        first = int((batch.sentences[place] == 0)[batch.mask[place]].sum())
        assert first == len(tokeniser([pair.query or ""])[0].ids)


def test_in_a_planted_pair_both_texts_have_evidence() -> None:
    for example in PLANTED["planted:entail"](0).test:
        assert example.query is not None and example.evidence is not None
        assert len(example.query_evidence) == len(example.evidence) == (3 if example.label == 1 else 1)
        assert all(example.query[start:end].isalpha() for start, end in example.query_evidence)

"""Four modes on a corpus where the source decides label and explanation: all are learnt, and explanations matter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assay.data.annotated import Explained
from assay.data.annotated import planted_explanations as planted
from assay.data.examples import Example
from assay.errors import AssayError
from assay.models.config import Training
from assay.rationales.sequences import Sizes
from assay.rationales.text_explanations import (
    MODES,
    School,
    Task,
    TextExplainer,
    TextRecipe,
    deranged,
    explained_pairs,
    label_pairs,
    mode_of,
    read,
    scorer_pairs,
)
from assay.rationales.text_measuring import consistency, exchanged, simulated, simulator_pairs, without
from assay.rationales.writers import WriterRecipe

CORPUS = planted(300)
LABELS = np.array([item.example.label for item in CORPUS.test])
CHANCE = 0.5  # at most so many are right by chance, of 60 with three classes


def recipe(epochs: int) -> WriterRecipe:
    training = Training(epochs=epochs, patience=epochs, batch_size=16, learning_rate=1e-2, decay=0.0, clip=1.0)
    return WriterRecipe(Sizes(24, 12, 0, 0.0), training)


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> School:
    return School.of(CORPUS, TextRecipe(recipe(15), recipe(5)), tmp_path_factory.mktemp("school"))


@pytest.mark.parametrize(
    "mode", [mode if mode == "predict_then_explain" else pytest.param(mode, marks=pytest.mark.slow) for mode in MODES]
)
def test_every_mode_learns_to_answer_and_to_explain_and_explanations_of_others_mislead(
    mode: str, school: School
) -> None:
    longer = replace(school.recipe, writer=recipe(20)) if mode == "joint_prefix" else school.recipe
    explainer = replace(school, recipe=longer).explainer(mode)
    answers = explainer(CORPUS.test)
    assert np.mean(answers.labels == LABELS) >= 0.95
    same = [why == item.explanations[0] for why, item in zip(answers.explanations, CORPUS.test, strict=True)]
    assert np.mean(same) >= 0.95
    found = exchanged(explainer, answers, CORPUS.test, school.reader())
    assert found.own.mean() >= 0.95 and found.others.mean() <= CHANCE
    if mode == "joint_prefix":
        assert np.mean(explainer.labels_alone(CORPUS.test) == LABELS) >= 0.95


@pytest.mark.slow
def test_a_scorer_that_sees_the_example_still_needs_its_explanations(school: School) -> None:
    training = Training(epochs=25, patience=25, batch_size=32, learning_rate=5e-3, decay=0.0, clip=1.0)
    decider = WriterRecipe(Sizes(32, 16, 1, 0.0), training)
    given = replace(school, recipe=replace(school.recipe, beside=True, decider=decider))
    explainer = given.explainer("label_specific")
    answers = explainer(CORPUS.test)
    found = exchanged(explainer, answers, CORPUS.test, school.reader())
    assert found.own.mean() >= 0.9 and found.others.mean() <= 0.55


def test_a_simulator_gains_from_explanations_that_all_leak(school: School) -> None:
    explainer = school.explainer("predict_then_explain")
    taught, tested = ((items, explainer(items)) for items in (CORPUS.train, CORPUS.test))
    found = simulated(school, "planted", taught, tested, recipe(3))
    assert found.empty == ("nonleaked",) and found.count[0] == len(LABELS)
    assert found.las == found.gain[0] == pytest.approx(found.raw)
    assert found.low <= found.las <= found.high


def test_the_label_changes_without_the_word_that_the_explanation_names(school: School) -> None:
    explainer = school.explainer("predict_then_explain")
    found = consistency(explainer, explainer(CORPUS.test), CORPUS.test)
    assert found.mentioned.mean() > 0.4 and found.others.mean() < 0.1


def test_shuffling_people_s_explanations_leaves_a_reader_at_chance(school: School) -> None:
    reader, task = school.reader(), school.task
    written = [item.explanations[0] for item in CORPUS.test]
    moved = [written[place] for place in deranged(len(written))]
    assert np.mean(read(reader, task, CORPUS.test, written) == LABELS) >= 0.95
    assert np.mean(read(reader, task, CORPUS.test, moved) == LABELS) <= CHANCE


ITEM = Explained(Example("a dog", 1, query="an animal"), ("dogs are animals", "so it is"))
TASK = Task(("no", "yes"), ("premise", "hypothesis"))


def test_the_formats_of_the_modes() -> None:
    asked = "premise : a dog hypothesis : an animal"
    formats = {name: [(pair.source, pair.target) for pair in explained_pairs(name, TASK, [ITEM])] for name in MODES}
    assert formats["predict_then_explain"][0] == (asked, "yes because dogs are animals")
    assert formats["explain_then_predict"] == [(asked, "dogs are animals"), (asked, "so it is")]
    assert formats["label_specific"][1] == (f"yes : {asked}", "so it is")
    assert formats["joint_prefix"][0] == (f"explain {asked}", "yes because dogs are animals")
    assert formats["joint_prefix"][2:] == [(asked, "yes")]
    assert [pair.target for pair in label_pairs(TASK, [ITEM])] == ["yes"]


def test_choices_stand_beside_their_numbers_and_beside_an_explanation() -> None:
    item = Explained(Example("where?", 1, query="first shop second house"), ("why",), ("shop", "house"))
    task = Task(("first", "second"), ("question", "choices"))
    assert task.named(item, 1) == "second house"
    assert task.read(item, "why") == "explanation : why choices : first shop second house"
    assert task.scored(item, 0, "why", False).startswith("first shop explanation : why")
    assert task.scored(item, 0, "why", True).endswith(task.asked(item))


def test_a_scorer_beside_the_example_learns_nothing_from_explanations_of_others() -> None:
    items = [replace(ITEM, example=replace(ITEM.example, label=place % 2)) for place in range(400)]
    candidates = [(f"no{place}", f"yes{place}") for place in range(400)]
    pairs = scorer_pairs(TASK, items, candidates, beside=True)
    own, others = pairs[::2], pairs[1::2]
    assert len(own) == len(others) == 800
    assert all(pair.target == TASK.words[place // 2 % 2] for place, pair in enumerate(own))
    for parity in range(2):  # whatever the label of the example, both labels are as likely
        drawn = [pair.target == "yes" for place, pair in enumerate(others) if place // 2 % 2 == parity]
        assert 0.4 < np.mean(drawn) < 0.6
    assert len(scorer_pairs(TASK, items, candidates)) == 800


def test_a_derangement_leaves_nothing_in_place() -> None:
    for count in (2, 3, 17):
        order = deranged(count, 3)
        assert sorted(order) == list(range(count)) and not (order == np.arange(count)).any()
    with pytest.raises(AssayError, match="At least two"):
        deranged(1)


def test_what_the_explanation_repeats_is_cut_and_as_much_of_the_rest() -> None:
    item = Explained(Example("a brown dog barks", 0, query="a dog is loud"), ())
    cut, other = without(item, "the dog barks", np.random.default_rng(0))
    assert (cut.example.text, cut.example.query) == ("a brown", "a is loud")
    words = f"{other.example.text} {other.example.query}".split()
    assert len(words) == 5 and words.count("dog") == 2 and "barks" in words


def test_an_answer_that_was_not_written_is_foreseen_by_nobody(school: School) -> None:
    explainer = school.explainer("predict_then_explain")
    answers = replace(explainer(CORPUS.test[:3]), labels=np.array([-1, 0, 1]))
    pairs = simulator_pairs(school.task, CORPUS.test[:3], answers)
    assert [pair.target for pair in pairs[::3]] == ["", "animal", "plant"]


def test_wrong_names_are_told(school: School, tmp_path: Path) -> None:
    with pytest.raises(AssayError, match="Unknown mode 'joint'; did you mean 'joint_prefix'"):
        mode_of("joint")
    with pytest.raises(AssayError, match="is not one word"):
        _ = Task(("very good", "bad"), ("a", "b")).words
    with pytest.raises(AssayError, match="nothing decides by the explanation"):
        TextExplainer("predict_then_explain", TASK, school.reader()).decided([ITEM], [("why",)])

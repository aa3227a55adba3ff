"""Training: it learns, it is deterministic, and an interruption changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.data.examples import Corpus, Example
from assay.data.text import TextOptions
from assay.errors import AssayError
from assay.models import budget, recipes, store
from assay.models import fit as training
from assay.models.config import Architecture, Training
from assay.models.encoders import ENCODERS
from assay.models.objectives import Labels
from assay.models.recipes import Recipe, train
from assay.models.textmodel import predict

SMALL = Recipe(
    Architecture(embedding=8, hidden=8, alignment_size=4),
    TextOptions(min_count=1),
    Training(epochs=3, batch_size=8),
)


def corpus(n: int = 64, classes: tuple[str, ...] = ("bad", "good")) -> Corpus:
    """Texts in which one word tells the class."""
    fillers = ["the", "a", "film", "story", "actor", "scene", "with", "and", "of"]
    examples = tuple(
        Example(" ".join([*fillers[i % 5 :], classes[i % len(classes)], *fillers[: i % 7]]), i % len(classes))
        for i in range(n)
    )
    return Corpus("words", classes, examples[: n // 2], examples[n // 2 : 3 * n // 4], examples[3 * n // 4 :])


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_learns_a_word_that_tells_the_class(encoder):
    chosen = replace(SMALL, architecture=replace(SMALL.architecture, encoder=encoder))
    chosen = replace(chosen, training=replace(SMALL.training, epochs=25, patience=25, learning_rate=0.02))
    assert train(corpus(), chosen).history["best_dev"] > 0.95


def test_the_seed_decides_the_weights():
    one, again = train(corpus(), SMALL), train(corpus(), SMALL)
    other = train(corpus(), replace(SMALL, training=replace(SMALL.training, seed=1)))
    assert same(one.network, again.network)
    assert not same(one.network, other.network)


def test_training_leaves_the_random_state_alone():
    before = torch.random.get_rng_state()
    train(corpus(), SMALL)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("steps", [0, 3, 4, 5, 9, 11])
@pytest.mark.parametrize("mlm", [0.0, 1.0])  # with a head that learns along and is not stored
def test_an_interrupted_training_ends_in_the_same_weights(tmp_path, monkeypatch, steps, mlm):
    recipe = replace(SMALL, training=replace(SMALL.training, mlm=mlm))
    whole = train(corpus(), recipe, tmp_path / "whole")
    original, done = training.collate, []

    def interrupted(rows, classes):
        done.append(1)
        if len(done) > steps:
            raise KeyboardInterrupt
        return original(rows, classes)

    monkeypatch.setattr(training, "collate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(corpus(), recipe, tmp_path / "cut")
    monkeypatch.setattr(training, "collate", original)
    resumed = train(corpus(), recipe, tmp_path / "cut")
    assert same(whole.network, resumed.network)
    assert whole.history == resumed.history
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == [
        "model.json",
        "tokenizer.json",
        "weights.safetensors",
    ]


def test_resuming_skips_the_finished_epochs(tmp_path, monkeypatch):
    calls = []
    original = training.Checkpoint.save

    def stop_after_two(self, *arguments):
        original(self, *arguments)
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(training.Checkpoint, "save", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        train(corpus(), SMALL, tmp_path)
    train(corpus(), SMALL, tmp_path)
    assert len(calls) == 3


def test_a_finished_model_is_not_trained_again(tmp_path, monkeypatch):
    first = train(corpus(), SMALL, tmp_path)
    monkeypatch.setattr(recipes, "fit", lambda *_: pytest.fail("trained again"))
    assert same(first.network, train(corpus(), SMALL, tmp_path).network)


@pytest.mark.parametrize("changed", ["seed", "data"])
def test_a_folder_with_another_model_is_left_alone(tmp_path, changed):
    train(corpus(), SMALL, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    recipe = replace(SMALL, training=replace(SMALL.training, seed=1)) if changed == "seed" else SMALL
    with pytest.raises(AssayError, match="other options or data"):
        train(corpus(72) if changed == "data" else corpus(), recipe, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_checkpoint_of_another_training_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(recipes.store, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        train(corpus(), SMALL, tmp_path)
    with pytest.raises(AssayError, match="belongs to a training with other options or data"):
        train(corpus(72), SMALL, tmp_path)


def test_a_damaged_checkpoint_is_named(tmp_path):
    (tmp_path / recipes.CHECKPOINT).write_bytes(b"not a checkpoint")
    with pytest.raises(AssayError, match="is damaged"):
        train(corpus(), SMALL, tmp_path)


class Scripted(training.ClassifierTrainer):
    """A trainer that learns nothing and is judged by a script."""

    script: tuple[tuple[float, float], ...] = ()

    def step(self, rows, shares=None):
        self.network.decoder.bias.data += 1  # so that weights tell the epoch
        return 1.0

    def judge(self):
        return self.script[self.state.epoch]


def scripted(*script: tuple[float, float], **options):
    rows, _ = recipes.tokenise(corpus().train[:8], recipes.Tokeniser.fit(["a"], SMALL.text), 99)
    network = recipes.initialise(SMALL, recipes.Tokeniser.fit(["a"], SMALL.text), 2)
    trainer = Scripted.of(network, rows, Training(batch_size=8, **options), Labels())
    trainer.script, begun = script, network.decoder.bias.detach().clone()
    state = trainer.run()
    return state, round(float((network.decoder.bias.detach() - begun)[0]))


def test_early_stopping_keeps_the_best_epoch():
    scores = [(score, 1.0) for score in (0.5, 0.8, 0.7, 0.8, 0.7, 0.9)]
    state, kept = scripted(*scores, epochs=6, patience=2)
    assert (state.epoch, state.best_epoch, state.best_score, kept) == (4, 2, 0.8, 2)
    assert scripted(*scores, epochs=6, patience=4)[0].best_epoch == 6
    assert scripted(*scores, epochs=3, patience=4)[0].epoch == 3


def test_of_equal_scores_the_surer_one_is_kept():
    state, kept = scripted((1.0, 0.4), (1.0, 0.2), (1.0, 0.3), epochs=3, patience=3)
    assert (state.best_epoch, state.best_loss, kept) == (2, 0.2, 2)


def test_a_model_still_at_chance_is_given_time():
    scores = [(score, 1.0) for score in (0.51, 0.5, 0.49, 0.5)]
    assert scripted(*scores, epochs=4, patience=2)[0].epoch == 4
    assert scripted((0.7, 1.0), *scores, epochs=5, patience=2)[0].epoch == 3


def test_an_epoch_whose_score_is_no_number_is_never_the_best():
    nothing = float("nan")
    state, kept = scripted((0.7, 1.0), (nothing, nothing), epochs=2)
    assert (state.best_epoch, kept) == (1, 1)
    assert scripted((nothing, nothing), (nothing, nothing), epochs=2)[1] == 0


def test_long_texts_read_in_turn_give_the_same_step(monkeypatch):
    at_once = train(corpus(), SMALL)
    monkeypatch.setitem(budget.ROOM, "training", (20, 20))
    in_turn = train(corpus(), SMALL)
    for one, other in zip(at_once.network.parameters(), in_turn.network.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)
    assert at_once.history["losses"] == pytest.approx(in_turn.history["losses"], rel=1e-4)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_members_with_rows_of_their_own_learn_as_each_alone(encoder):
    tokeniser = recipes.Tokeniser.fit([each.text for each in corpus().train], SMALL.text)
    rows, _ = recipes.tokenise(corpus().train[:24], tokeniser, 99)
    shape = replace(SMALL.architecture, encoder=encoder, projection="entmax(1.5)")

    def begun(seed: int) -> training.ClassifierTrainer:
        network = recipes.initialise(Recipe(shape, SMALL.text, Training(seed=seed)), tokeniser, 2)
        return training.ClassifierTrainer.of(network.double(), rows, Training(batch_size=8, clip=0.5, seed=seed))

    members, alone = training.Members.of([begun(seed) for seed in range(3)]), [begun(seed) for seed in range(3)]
    epochs = [each.groups() for each in alone]
    for step in range(3):
        members.step(np.stack([groups[step] for groups in epochs]))
        for each, groups in zip(alone, epochs, strict=True):
            each.step(groups[step])
    for index, each in enumerate(alone):
        for name, parameter in each.learner.named_parameters():
            torch.testing.assert_close(members.parameters[name][index], parameter, atol=1e-6, rtol=1e-6)


def test_rare_classes_weigh_more():
    rows, _ = recipes.tokenise(corpus().train[:8] + corpus().train[:8:2], recipes.Tokeniser.fit(["a"], SMALL.text), 99)
    network = recipes.initialise(SMALL, recipes.Tokeniser.fit(["a"], SMALL.text), 2)
    weights = training.class_weights(rows, network, SMALL.training)
    assert weights.tolist() == pytest.approx([12 / (2 * 8), 12 / (2 * 4)])


def test_a_class_without_training_text_is_named():
    given = corpus()
    with pytest.raises(AssayError, match="No training text has the class 'mixed'"):
        train(replace(given, classes=("bad", "good", "mixed")), SMALL)


def asking(examples):
    return tuple(replace(example, query="why so?") for example in examples)


def test_a_corpus_of_pairs_gets_a_paired_model(tmp_path):
    pairs = replace(corpus(), train=asking(corpus().train), dev=asking(corpus().dev))
    trained = train(pairs, SMALL, tmp_path)
    assert trained.network.architecture.shape == "paired"
    assert {"why", "so"} <= set(trained.tokeniser.vocabulary)
    again = store.load(tmp_path).network.state_dict()
    assert all(torch.equal(again[name], tensor) for name, tensor in trained.network.state_dict().items())


def test_what_a_shape_cannot_read_is_refused():
    half = replace(corpus(), train=asking(corpus().train))
    pairs = replace(half, dev=asking(corpus().dev))
    for texts, shape, words in (
        (half, "flat", "some have none"),
        (pairs, "hierarchical", "--joined"),
        (corpus(), "paired", "has no questions"),
    ):
        with pytest.raises(AssayError, match=words):
            train(texts, replace(SMALL, architecture=replace(SMALL.architecture, shape=shape)))


@pytest.mark.parametrize("wrong", [{"hidden": 0}, {"embedding": -1}, {"encoder": "cnn", "hidden": 7}])
def test_sizes_that_cannot_be_are_refused(wrong):
    with pytest.raises(AssayError):
        Architecture(**wrong)


def test_frozen_embeddings_stay():
    frozen = replace(SMALL, architecture=replace(SMALL.architecture, frozen=True))
    trained = train(corpus(), frozen)
    start = recipes.initialise(frozen, trained.tokeniser, 2)
    assert torch.equal(trained.network.embedding.weight, start.embedding.weight)
    assert not torch.equal(trained.network.decoder.weight, start.decoder.weight)


def test_a_stored_model_answers_the_same(tmp_path):
    model = train(corpus(), SMALL, tmp_path)
    again = store.load(tmp_path)
    rows, _ = recipes.tokenise(corpus().test, again.tokeniser, 99)
    assert (predict(again.network, rows) == predict(model.network, rows)).all()
    assert again.classes == ("bad", "good")
    assert store.fingerprint(again.network) == store.fingerprint(model.network)


@pytest.mark.parametrize("file", ["weights.safetensors", "tokenizer.json", "model.json"])
@pytest.mark.parametrize("damage", ["truncated", "missing", "garbage"])
def test_a_damaged_model_folder_is_named(tmp_path, file, damage):
    train(corpus(), SMALL, tmp_path)
    place = tmp_path / file
    content = place.read_bytes()
    if damage == "missing":
        place.unlink()
    else:
        place.write_bytes(content[: len(content) // 2] if damage == "truncated" else b"\xff\x00garbage")
    with pytest.raises(AssayError) as caught:
        store.load(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_folder_that_is_no_model_is_named(tmp_path):
    with pytest.raises(AssayError, match="is not a model folder"):
        store.load(tmp_path)


def test_a_model_of_a_later_kind_is_named(tmp_path):
    train(corpus(), SMALL, tmp_path)
    card = json.loads((tmp_path / store.CARD).read_text())
    card["architecture"]["encoder"] = "quantum"
    (tmp_path / store.CARD).write_text(json.dumps(card))
    with pytest.raises(AssayError, match="quantum"):
        store.load(tmp_path)


def test_a_card_without_a_history_is_damaged(tmp_path):
    train(corpus(), SMALL, tmp_path)
    card = json.loads((tmp_path / store.CARD).read_text())
    del card["history"]
    (tmp_path / store.CARD).write_text(json.dumps(card))
    with pytest.raises(AssayError, match=r"damaged .*history"):
        store.load(tmp_path)

"""Players: all read what the predictor embeds, and the same seed casts the same ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.data.batches import collate, tokenise
from assay.data.text import SPECIAL, Tokeniser
from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.models.hf_finetuning import FineTuning
from assay.models.hf_loading import Opening
from assay.rationales.game import Play, saliency
from assay.rationales.learning import Options, learn
from assay.rationales.recipes import RECIPES
from assay.rationales.trainers import build_players, build_pretrained_players
from tests.rationales.folders import OURS, SHORT, encoder, films

TOKENISER = Tokeniser.fit([example.text for example in films().train], OURS.text)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> FineTuning:
    return FineTuning(encoder(tmp_path_factory.mktemp("encoder")), "attention", training=SHORT)


def players(base: FineTuning, recipe: str = "lei", reading: str = "mask"):
    scheme = RECIPES[recipe](Options(2, 0.3, reading=reading))
    return scheme, *build_pretrained_players(scheme, base, films().classes, Opening())


def test_only_the_predictor_knows_words() -> None:
    made = build_players(RECIPES["lei"](Options(2)), OURS, TOKENISER, 2)
    assert made.predictor.embedding.num_embeddings == len(TOKENISER.vocabulary)
    assert made.reader("selector").embedding.num_embeddings == len(SPECIAL)


@pytest.mark.parametrize("seed", [0, 3])
def test_the_same_seed_casts_the_same_players_and_no_two_readers_alike(seed: int) -> None:
    recipe = replace(OURS, training=replace(SHORT, seed=seed))
    one, other = (build_players(RECIPES["lei"](Options(2)), recipe, TOKENISER, 2).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert not torch.equal(one["readers.predictor.decoder.weight"], one["readers.selector.decoder.weight"])


def test_a_network_that_pools_sentences_cannot_play() -> None:
    shaped = replace(OURS, architecture=replace(OURS.architecture, shape="hierarchical"))
    with pytest.raises(AssayError, match="hierarchical"):
        build_players(RECIPES["lei"](Options(2)), shaped, TOKENISER, 2)


def test_pretrained_players_start_alike_below_their_heads(base: FineTuning) -> None:
    _, made, _ = players(base)
    weights = made.state_dict()
    inner = [name.removeprefix("readers.selector.") for name in weights if name.startswith("readers.selector.inner.")]
    assert inner and all(
        torch.equal(weights[f"readers.selector.{name}"], weights[f"readers.predictor.{name}"]) for name in inner
    )
    assert not torch.equal(weights["readers.selector.decoder.weight"], weights["readers.predictor.decoder.weight"])


def test_embeddings_move_with_a_pretrained_predictor_only(base: FineTuning) -> None:
    _, made, _ = players(base)
    moving = {id(each) for each in made.of("selector")}
    assert id(made.reader("selector").embedding.weight) not in moving
    assert id(made.predictor.embedding.weight) in {id(each) for each in made.of("predictor")}


@pytest.mark.parametrize("reading", ["mask", "zero", "delete"])
def test_words_in_pieces_are_selected_whole(base: FineTuning, reading: str) -> None:
    scheme, made, tokeniser = players(base, reading=reading)
    rows, _ = tokenise(films().test, tokeniser, tokeniser.options.longest)
    batch = collate(rows, 2)
    assert batch.subwords is not None and batch.subwords.shape[2] > 1
    play = Play(made.eval(), batch, scheme.rules, decoded=True)
    assert play.z.shape == (len(batch), 1, batch.ids.shape[1])
    assert (play.z[:, 0].sum(-1) == (0.3 * batch.lengths).ceil()).all()
    logits = play.read("predictor", "selected").logits
    changed = play.x.clone()
    changed[(play.z[:, 0] == 0) & batch.mask] = 7.0  # what is not selected is not read
    with torch.no_grad():
        again = Play(made, batch, scheme.rules, decoded=True, x=changed)
        again.__dict__["z"] = play.z
        assert torch.allclose(again.read("predictor", "selected").logits, logits, atol=1e-5)


@pytest.mark.parametrize("recipe", ["fresh", "fresh_tagged"])
def test_a_pretrained_teacher_says_what_counts(base: FineTuning, recipe: str) -> None:
    scheme, made, tokeniser = players(base, recipe)
    rows, _ = tokenise(films().train, tokeniser, 64)
    learn(made, scheme, rows, rows, replace(SHORT, epochs=3))
    batch = collate(rows[:3], 2)
    made.eval()
    teacher = made.reader("teacher")
    teacher.embedding.load_state_dict(made.predictor.embedding.state_dict())
    guess = teacher(teacher.embed(batch), batch).logits.argmax(-1)
    found = saliency("lrp", made, made.predictor.embed(batch), batch)
    torch.testing.assert_close(found, EXPLAINERS["lrp"](teacher, batch, guess))

"""A game over a corpus: it ends the same when killed, and what it leaves answers without chance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch

from assay.models.config import Training
from assay.models.store import Checkpoint
from assay.rationales.game import Move, Stage
from assay.rationales.learning import Scheme, learn
from assay.rationales.losses import AnswerCrossEntropy, Continuity, Size
from assay.rationales.players import Rules
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.relaxations import RELAXATIONS, Bernoulli
from assay.rationales.units import Units
from tests import builders
from tests.rationales.small_players import players, rows

TRAINING = Training(epochs=4, patience=4, batch_size=8, learning_rate=5e-3)
TERMS = ((1.0, AnswerCrossEntropy()), (1.0, Size(0.3, "text")), (0.3, Continuity()))


def anew(seed: int = 0):
    """The players with which a game begins."""
    return players(Rules(), seed=seed, dtype=torch.float32)


class Killed(Exception):
    pass


@dataclass
class Fuse:
    """A cost of nothing that ends the game at its n-th step."""

    steps: int

    def __call__(self, play):
        self.steps -= 1
        if self.steps < 0:
            raise Killed
        return torch.zeros(len(play.batch))


def game(fuse: Fuse | None = None) -> Scheme:
    """Two stages with masks that are drawn."""
    more = () if fuse is None else ((1.0, fuse),)
    first = Stage((Move(("predictor",), ((1.0, AnswerCrossEntropy(view="all")), *more)),), share=0.25)
    then = Stage(
        (Move(("selector", "predictor"), (*TERMS, *more)), Move(("selector",), TERMS)),
        share=0.75,
        pace={"selector": 0.5},
    )
    return Scheme(Rules(relaxation=Bernoulli()), (first, then))


@pytest.fixture(scope="module")
def played():
    """The game, played to its end."""
    return learn(anew(), game(), rows(), rows(), TRAINING)


@pytest.mark.parametrize("steps", [1, 7, 10], ids=["in the first epoch", "in the third epoch", "in the last epoch"])
def test_a_game_that_was_killed_ends_with_the_same_weights(tmp_path, steps: int, played) -> None:
    whole, course = played
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", {"name": "game"})
    with pytest.raises(Killed):
        learn(anew(), game(Fuse(steps)), rows(), rows(), TRAINING, checkpoint)
    assert checkpoint.path.exists() is (steps >= 3)
    torch.rand(3)  # whatever happened in between
    again, resumed = learn(anew(9 if steps >= 3 else 0), game(), rows(), rows(), TRAINING, checkpoint)
    assert resumed == course and course.epoch == 4
    expected = whole.players.state_dict()
    for name, tensor in again.players.state_dict().items():
        assert torch.equal(tensor, expected[name]), name


def test_the_same_seed_ends_with_the_same_weights_and_another_with_others() -> None:
    ends = [
        learn(anew(), game(), rows(), rows(), replace(TRAINING, epochs=1, seed=seed))[0].players.head.score.weight
        for seed in (0, 0, 1)
    ]
    assert torch.equal(ends[0], ends[1]) and not torch.equal(ends[0], ends[2])


def test_what_comes_back_is_the_best_epoch_of_the_last_stage(played) -> None:
    model, course = played
    assert course.best_epoch > 1 and course.best_score == max(course.scores[1:])
    assert not model.training and len(course.losses) == len(course.shares) == 4
    assert all(0 <= share <= 1 for share in course.shares)


@pytest.mark.parametrize("name", RELAXATIONS)
@pytest.mark.parametrize("units", [Units(), Units("span", 3), Units("sentence")], ids=lambda units: units.kind)
def test_padding_and_order_change_no_answer_and_no_selection(name: str, units: Units) -> None:
    rules = Rules(units, RELAXATIONS[name]())
    model = Rationaliser(players(rules), rules).eval()
    batch, wide = builders.texts(), builders.texts(width=17)
    order = torch.tensor([2, 0, 3, 1])
    expected = model(model.embed(batch), batch).logits
    selected = model.selection(model.embed(batch), batch)
    for other, places in ((wide, torch.arange(4)), (batch[order], order)):
        x = model.embed(other)
        assert torch.allclose(model(x, other).logits, expected[places], atol=1e-12)
        found = model.selection(x, other)
        assert torch.equal(found.kept[:, :12], selected.kept[places]) and not found.kept[:, 12:].any()
        assert torch.allclose(found.chance[:, :12], selected.chance[places], atol=1e-12)


@pytest.mark.parametrize("name", RELAXATIONS)
def test_an_answer_is_without_chance_and_hears_only_what_is_selected(name: str) -> None:
    rules = Rules(relaxation=RELAXATIONS[name]())
    model = Rationaliser(players(rules), rules).eval()
    batch = builders.texts()
    x = model.embed(batch)
    answers = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        answers.append(model(x, batch).logits)
    assert torch.equal(*answers)
    kept = model.selection(x, batch).kept
    assert torch.equal(kept.sum(-1), (0.2 * batch.lengths).ceil().long())
    alone = model.players.predictor(x * kept[..., None], batch).logits
    assert torch.allclose(answers[0], alone, atol=1e-12)


@pytest.mark.parametrize("reading", ["zero", "mask", "delete"])
def test_words_that_are_not_selected_may_be_any_words_to_the_predictor(reading: str) -> None:
    rules = Rules(reading=reading)
    cast = players(rules)
    model = Rationaliser(cast, rules).eval()
    batch = builders.texts()
    x = model.embed(batch)
    play = model.play(batch, x)
    other = x + torch.randn_like(x) * ~model.selection(x, batch).kept[..., None]
    changed = model.play(batch, other)
    changed.z = play.z
    logits = changed.read("predictor", "selected").logits
    assert torch.allclose(logits, model(x, batch).logits, atol=1e-12)

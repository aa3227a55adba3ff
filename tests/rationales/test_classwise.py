"""CAR: a mask for each class, on the words that speak for it, whichever class is the true one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.models.config import Training
from assay.models.textmodel import groups, predict
from assay.rationales.game import OWN, Play
from assay.rationales.learning import Options, learn
from assay.rationales.losses import AllMasksCrossEntropy, Convincing, Sizes
from assay.rationales.players import Rules, assemble_players
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.recipes import car
from assay.rationales.relaxations import StraightThrough
from tests import builders
from tests.rationales.small_players import players

READERS = ("predictor", "selector", "guide")
FIRST, WORDS = 4, 3  # the first word of the first class, and how many words each class has


def mixed(count: int, classes: int = 2) -> list[Tokenised]:
    """Texts of ten words: two speak for the class, and in every other text one speaks for another class."""
    generator = torch.Generator().manual_seed(4)
    texts = []
    for index in range(count):
        label, length = index % classes, 10
        ids = torch.randint(FIRST + classes * WORDS, builders.WORDS, (length,), generator=generator)
        places = torch.randperm(length, generator=generator)
        ids[places[:2]] = FIRST + label * WORDS + torch.randint(WORDS, (2,), generator=generator)
        if index // classes % 2:
            wrong = (label + 1 + index // (2 * classes) % (classes - 1)) % classes
            ids[places[2]] = FIRST + wrong * WORDS + torch.randint(WORDS, (), generator=generator)
        texts.append(Tokenised(index, ids, torch.zeros(length, 2).long(), torch.zeros(length).long(), label))
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_each_mask_lies_on_words_of_its_class_also_where_another_class_is_true(classes: int) -> None:
    scheme, texts = car(Options(classes, rate=0.2, continuity=0.0)), mixed(240 * classes, classes)
    sizes = {"embedding": 24, "hidden": 16, "alignment_size": 16}
    readers = {
        name: builders.model(place, classes, torch.float32, encoder="cnn", **sizes)
        for place, name in enumerate(scheme.readers)
    }
    training = Training(epochs=12, patience=12, batch_size=32, learning_rate=1e-2)
    cast = assemble_players(scheme.rules, readers, scheme.extras, classes)
    model, _ = learn(cast, scheme, texts[:-120], texts[-120:], training)
    both = [row for row in texts[-120:] if row.index // classes % 2]
    own, others = [], []
    for _, batch in groups(model, both):
        kept = model.play(batch).z > 0
        for word_class in range(classes):
            of_class = (batch.ids - FIRST) // WORDS == word_class
            for mask in range(classes):
                (own if mask == word_class else others).extend(kept[:, mask][of_class].tolist())
    assert np.mean(own) >= 0.75
    assert np.mean(others) <= 0.2
    answers = predict(model, both).argmax(-1) == [row.label for row in both]
    assert np.mean(answers) >= 0.75


def test_the_mask_that_is_shown_and_read_is_that_of_the_class_that_is_guessed() -> None:
    rules, batch = car(Options(2, rate=0.3)).rules, builders.batch()
    cast = players(rules, READERS, extras=("paths",))
    model = Rationaliser(cast, rules).eval()
    x = model.embed(batch)
    guide = cast.reader("guide")
    with torch.no_grad():
        guide.decoder.bias -= guide(x, batch).logits.mean(0)  # so that it does not guess one class only
    play, guess = model.play(batch, x), guide(x, batch).logits.argmax(-1)
    assert set(guess.tolist()) == {0, 1}
    kept = torch.stack([play.z[row, each] for row, each in enumerate(guess.tolist())]) > 0
    assert torch.equal(model.selection(x, batch).kept, kept)
    path = cast.extras["paths"].weight[guess]
    torch.testing.assert_close(
        model(x, batch).logits, cast.predictor(x * kept[..., None] + path[:, None], batch).logits
    )
    flipped = replace(batch, labels=1 - batch.labels)
    assert torch.equal(model.selection(x, flipped).kept, kept)


def test_while_it_learns_masks_depend_on_the_label() -> None:
    rules, batch = car(Options(2, rate=0.3)).rules, builders.batch()
    cast = players(rules, READERS, extras=("paths",))
    play = Play(cast, batch, rules)
    assert torch.equal(play.condition, batch.labels)
    torch.testing.assert_close(play.of_mask(play.z, OWN)[1], play.z[1, 1])


def test_costs_are_those_of_each_mask_by_itself() -> None:
    rules, batch = car(Options(2, rate=0.3)).rules, builders.batch()
    cast = players(rules, READERS, extras=("paths",))
    play = Play(cast, batch, rules)
    paths = cast.extras["paths"].weight
    chances = [cast.predictor(play.x * play.z[:, mask, :, None] + paths[mask], batch).probabilities for mask in (0, 1)]
    torch.testing.assert_close(Convincing()(play), -(chances[0][:, 0] + chances[1][:, 1]) / 2)
    true = [chance.gather(1, batch.labels[:, None])[:, 0].log() for chance in chances]
    torch.testing.assert_close(AllMasksCrossEntropy()(play), -(true[0] + true[1]) / 2)
    shares = [float(play.z[:, mask].detach().sum()) / float(batch.mask.sum()) for mask in (0, 1)]
    expected = (abs(shares[0] - 0.3) + abs(shares[1] - 0.3)) / 2
    assert Sizes(0.3)(play).tolist() == pytest.approx([expected] * len(batch))


def test_hard_choices_have_the_gradient_of_their_probabilities() -> None:
    theta = torch.randn(2, 3, 12, 1, dtype=torch.float64, requires_grad=True)
    mask = builders.batch((12, 7)).mask
    z = StraightThrough().draw(theta, mask).z
    assert torch.equal(z.detach().round(), ((theta[..., 0] > 0) & mask[:, None]).double())
    torch.testing.assert_close(z.detach(), z.detach().round())
    (gradient,) = torch.autograd.grad(z.sum(), theta)
    chance = theta[..., 0].detach().sigmoid()
    torch.testing.assert_close(gradient[..., 0], chance * (1 - chance) * mask[:, None])


def test_classwise_masks_without_a_condition_are_refused() -> None:
    with pytest.raises(AssayError, match="need a condition"):
        Rules(masks=2, classwise=True)

"""A stack of self-attention under a person's hands: against edits made by hand, row by row, and the audits."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from torch import nn

from assay.audits.cases import Case
from assay.audits.equal_predictions import Adversary
from assay.errors import AssayError
from assay.intervene.edits import ACTS, Act, Bend
from assay.intervene.stack_attention import StackSearch
from assay.models import budget
from assay.models.store import Opened
from assay.models.textmodel import TextModel
from assay.run.workbench import Workbench
from assay.types import Output
from tests import builders
from tests.workbenches import CLASSES, TEXT, batch, softmax, stack, tokeniser

KINDS = ("bert", "gpt2", "albert", "modernbert")
SAID = "This is not a good film, is it?"
LONG = "A very unwatchable film"


def attend(architecture: str, act: Act, text: str = SAID, query: str | None = None) -> dict:
    found = stack(architecture).attend(text, query, act)
    json.dumps(found, allow_nan=False)
    return found


def layers(architecture: str, text: str = SAID) -> tuple[list[np.ndarray], list[int]]:
    """The weights [H, S, S] of every layer, and the word of each place, -1 for none."""
    network, given = stack(architecture).model.network, batch(stack(architecture), text)
    with torch.no_grad():
        output = network.layered(network.embed(given), given)
    return [layer[0].numpy() for layer in output.attention[:-1]], network.token_index(given)[0].tolist()


def read_place(architecture: str, places: list[int]) -> int:
    return len(places) - 1 if architecture == "gpt2" else 0


def rerun(architecture: str, change, text: str = SAID) -> list[float]:
    """The answer when `change(layer, head, place, row)` gives the weights of every row, in plain Python."""
    network, given = stack(architecture).model.network, batch(stack(architecture), text)
    number = iter(range(network.layers))

    def edit(weights, mask):
        layer, together = next(number), weights.ndim == 4
        rows = weights[0] if together else weights.transpose(0, 1)  # [H, S, S]
        changed = [
            [change(layer, head, place, row.tolist()) for place, row in enumerate(each)]
            for head, each in enumerate(rows)
        ]
        made = torch.tensor(changed, dtype=weights.dtype)
        return made[None] if together else made.transpose(0, 1)

    return softmax(network(network.embed(given), given, edit).logits)


@pytest.mark.parametrize("architecture", KINDS)
def test_the_weight_of_a_word_is_the_mean_over_layers_heads_and_the_places_that_count(architecture) -> None:
    weights, places = layers(architecture)
    found = attend(architecture, Act())
    top = len(weights) - 1
    reads = [read_place(architecture, places)] if architecture != "modernbert" else None
    rows = [
        layer[head, place]
        for number, layer in enumerate(weights)
        for head in range(layer.shape[0])
        for place in (range(len(places)) if number < top or reads is None else reads)
    ]
    mean = np.mean(rows, 0)
    expected = [sum(mean[at] for at, word in enumerate(places) if word == each) for each in range(max(places) + 1)]
    if architecture != "modernbert":  # what that one reads is found out, not known here
        np.testing.assert_allclose(found["observed"], expected, atol=1e-12)
    assert sum(found["observed"]) + found["elsewhere"] == pytest.approx(1)
    assert found["elsewhere"] > 0
    assert found["tvd"] == found["jsd"] == 0
    one = attend(architecture, Act(layer=0, head=2, place=3))
    row = np.mean([weights[0][2, at] for at, word in enumerate(places) if word == 3], 0)
    assert one["observed"][1] == pytest.approx(sum(row[at] for at, word in enumerate(places) if word == 1))
    assert (one["layer"], one["head"], one["place"]) == (0, 2, 3)


@pytest.mark.parametrize("architecture", KINDS)
def test_a_weight_that_is_set_to_what_it_is_changes_nothing(architecture) -> None:
    at = {"layer": 0, "head": 1, "place": 4}
    weight = attend(architecture, Act(**at))["observed"][3]
    found = attend(architecture, Act("set", {3: weight}, **at))
    np.testing.assert_allclose(found["weights"], found["observed"], atol=1e-12)
    assert found["tvd"] == pytest.approx(0, abs=1e-12)
    assert found["jsd"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("architecture", KINDS)
def test_one_weight_of_one_row_is_set_and_no_other_row(architecture) -> None:
    _, places = layers(architecture)
    row = places.index(4)
    column = places.index(3)

    def change(layer, head, place, weights):
        if (layer, head, place) != (0, 1, row):
            return weights
        left = 1 - weights[column]
        return [0.6 if at == column else 0.4 * weight / left for at, weight in enumerate(weights)]

    found = attend(architecture, Act("set", {3: 0.6}, layer=0, head=1, place=4))
    np.testing.assert_allclose(list(found["after"].values()), rerun(architecture, change), atol=1e-10)
    assert found["weights"][3] == pytest.approx(0.6)
    assert found["tvd"] > 0 or architecture == "modernbert"  # that one is sure of its answer
    text, row = stack(architecture)._read(SAID, None), Act(layer=0, head=1, place=4)
    with torch.no_grad():
        output = text.model(text.x, text.batch, text._placed(row, _bend(text, {3: 0.6})))
    changed = (output.attention[0] - text.stack.weights[0]).abs().amax(-1)[0] > 1e-12
    assert changed.nonzero().tolist() == [[1, places.index(4)]]


def _bend(text, given):
    return Bend(text.stack.token_index, given)


@pytest.mark.parametrize("architecture", KINDS)
def test_words_are_erased_and_set_everywhere_as_by_hand(architecture) -> None:
    """In all layers and heads, with a word of several subwords; what a place may not see stays without weight."""
    _, places = layers(architecture, LONG)
    word = 2
    columns = [at for at, owner in enumerate(places) if owner == word]
    assert len(columns) > 1

    def without(layer, head, place, weights):
        left = [0.0 if at in columns else weight for at, weight in enumerate(weights)]
        return [weight / sum(left) if sum(left) else 0.0 for weight in left]

    def half(layer, head, place, weights):
        own = sum(weights[at] for at in columns)
        if own == 0:
            return weights
        if own == 1:
            return weights
        return [weight * (0.5 / own if at in columns else 0.5 / (1 - own)) for at, weight in enumerate(weights)]

    erased = attend(architecture, Act("erase", items=(word,)), LONG)
    np.testing.assert_allclose(list(erased["after"].values()), rerun(architecture, without, LONG), atol=1e-10)
    assert erased["weights"][word] == 0
    found = attend(architecture, Act("set", {word: 0.5}), LONG)
    np.testing.assert_allclose(list(found["after"].values()), rerun(architecture, half, LONG), atol=1e-10)
    assert ("wherever it may be" in found["note"]) == (architecture in ("gpt2", "modernbert"))
    if architecture == "bert":
        assert found["weights"][word] == pytest.approx(0.5)
        assert sum(found["weights"]) + found["elsewhere_after"] == pytest.approx(1)


def test_uniform_attention_in_one_layer_is_as_by_hand() -> None:
    found = attend("bert", Act("uniform", layer=1))
    expected = rerun("bert", lambda layer, head, place, row: [1 / len(row)] * len(row) if layer == 1 else row)
    np.testing.assert_allclose(list(found["after"].values()), expected, atol=1e-10)
    assert found["note"].startswith("In layer 1: ")


def test_a_permutation_keeps_the_weights_of_each_row_and_its_seed_decides() -> None:
    text = stack("bert")._read(SAID, None)
    found = attend("bert", Act("permute", seed=5, layer=0, head=2, place=3))
    assert found == attend("bert", Act("permute", seed=5, layer=0, head=2, place=3))
    assert found["weights"] != attend("bert", Act("permute", seed=6, layer=0, head=2, place=3))["weights"]
    assert text.stack.weights[0].shape[-1] == len(layers("bert")[1])
    everywhere = attend("bert", Act("permute"))
    assert everywhere["tvd"] > 0
    assert everywhere["jsd"] > 0


def test_the_divergence_is_the_mean_over_what_is_changed() -> None:
    before, _ = layers("bert")
    text = stack("bert")._read(SAID, None)
    found = attend("bert", Act("set", {2: 0.7}, layer=0))
    edit = text._placed(Act(layer=0), _bend(text, {2: 0.7}))
    after = text.model(text.x, text.batch, edit).attention[0][0].detach().numpy()
    rows = [
        jensenshannon(before[0][head, place], after[head, place]) ** 2
        for head in range(after.shape[0])
        for place in range(after.shape[1])
    ]
    assert found["jsd"] == pytest.approx(float(np.mean(rows)), abs=1e-9)


def test_a_word_that_the_last_layer_is_not_read_at_changes_nothing_and_the_note_says_so() -> None:
    found = attend("bert", Act("set", {2: 0.9}, layer=1, place=3))
    assert found["tvd"] == pytest.approx(0, abs=1e-12)
    assert "does not read" in found["note"]
    assert "does not read" not in attend("bert", Act("set", {2: 0.9}, layer=0, place=3))["note"]


def test_the_furthest_attention_has_the_numbers_of_the_audit(monkeypatch) -> None:
    monkeypatch.setattr("assay.run.attending.STEPS", 6)
    found = attend("bert", Act("furthest", epsilon=0.02))
    bench = stack("bert")
    answer = Adversary(epsilon=0.02, steps=6)(Case(bench.model.network, batch(bench, SAID), {}))
    for name in ("jsd", "jsd_upper", "tvd"):
        assert found[name] == pytest.approx(answer.measures[name][0], abs=1e-9)
    assert found["kind"] == "lower bound"
    assert "search" in found["note"]
    with pytest.raises(AssayError, match="all layers at once"):
        attend("bert", Act("furthest", layer=1))


def test_a_long_text_is_searched_in_fewer_steps(monkeypatch) -> None:
    taken = []
    monkeypatch.setattr(
        "assay.run.attending.StackSearch", lambda epsilon, steps: taken.append(steps) or StackSearch(epsilon, 1)
    )
    attend("bert", Act("furthest"))
    monkeypatch.setitem(budget.ROOM, "attention search", (300, 300))
    attend("bert", Act("furthest"))
    assert taken == [30, 300 // 2 // len(layers("bert")[1])]


@pytest.mark.parametrize("architecture", KINDS)
def test_the_set_that_flips_does_flip_and_says_that_it_was_searched_for(architecture) -> None:
    texts = (SAID, LONG, "It is long, very long, not fun.", "A bad film, unable to be fun.")
    flips = 0
    for text in texts:
        found = attend(architecture, Act("flip"), text)
        if not found["chosen"]:
            assert "A search found no words" in found["note"]
            assert found["weights"] == found["observed"]
            continue
        flips += 1
        assert found["predicted_after"] != found["predicted_before"]
        assert found["after"] == attend(architecture, Act("erase", items=tuple(found["chosen"])), text)["after"]
        assert found["kind"] == ("exact" if len(found["chosen"]) == 1 else "search")
        assert ("fewer may be enough" in found["note"]) == (len(found["chosen"]) > 1)
    assert flips or architecture == "modernbert"


def test_a_set_that_flips_is_found_within_one_layer_too() -> None:
    found = attend("bert", Act("flip", layer=0), LONG)
    again = attend("bert", Act("erase", items=tuple(found["chosen"]), layer=0), LONG)
    assert found["after"] == again["after"]


def test_a_question_is_no_word_that_can_be_set() -> None:
    alone, asked = attend("bert", Act()), attend("bert", Act(), query="Is it fun?")
    assert asked["words"] == alone["words"]
    assert asked["elsewhere"] > alone["elsewhere"]
    found = attend("bert", Act("set", {0: 0.5}), query="Is it fun?")
    assert found["weights"][0] == pytest.approx(0.5)
    assert "--query='Is it fun?'" in found["command"] or "'--query=Is it fun?'" in found["command"]


MISTAKES = {
    "no layer 2": Act(layer=2),
    "no head 4": Act("uniform", head=4),
    "no word 99": Act(place=99),
    "not linear": Act("likeliest"),
}


@pytest.mark.parametrize("sentence", MISTAKES)
def test_what_is_not_there_is_refused_in_one_sentence(sentence) -> None:
    with pytest.raises(AssayError, match=sentence):
        attend("bert", MISTAKES[sentence])


def test_it_tells_its_layers_and_heads() -> None:
    about = stack("bert").about
    assert (about["attention"], about["layers"], about["heads"], about["items"]) == ("stack", 2, 4, "words")
    assert [kind for kind, reason in about["acts"].items() if reason] == ["likeliest"]


@pytest.mark.parametrize("architecture", ["deberta", "mpnet"])
def test_attention_that_cannot_be_edited_is_shown(architecture) -> None:
    bench = stack(architecture)
    weights, places = layers(architecture)
    found = attend(architecture, Act(layer=0))
    mean = weights[0].mean((0, 1))
    expected = [sum(mean[at] for at, word in enumerate(places) if word == each) for each in range(max(places) + 1)]
    np.testing.assert_allclose(found["observed"], expected, atol=1e-12)
    assert [kind for kind, reason in bench.about["acts"].items() if reason is None] == ["observed"]
    with pytest.raises(AssayError, match="cannot be edited"):
        attend(architecture, Act("uniform"))


class Bag(TextModel):
    """A model without any attention: the mean of its words."""

    cascade = ("decoder", "embedding")

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.decoder = nn.Embedding(builders.WORDS, 6), nn.Linear(6, 2)

    classes = property(lambda self: 2)
    paired = property(lambda self: False)
    ordinary = property(lambda self: 4)
    facts = property(lambda self: {"description": "a bag of words", "shape": "flat", "items": "words"})

    def embed(self, batch):
        return self.embedding(batch.ids)

    def forward(self, x, batch, edit=None):
        return Output(self.decoder((x * batch.mask[..., None]).sum(1)), ())

    def part(self, name):
        return getattr(self, name)


def test_a_model_without_attention_says_so_and_is_explained_all_the_same() -> None:
    bench = Workbench(Opened(Bag().eval(), tokeniser(), CLASSES[:2]), "bag")
    assert bench.about["attention"] == "none"
    assert set(bench.about["acts"]) == set(ACTS)
    for kind, reason in bench.about["acts"].items():
        assert reason is not None
        with pytest.raises(AssayError, match="neither a linear decoder"):
            bench.attend(TEXT, None, Act(kind))
    found = bench.explain(TEXT, explainers=["leave_one_out"])
    assert len(found["scores"]["leave_one_out"]) == len(found["words"])

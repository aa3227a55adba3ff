"""Attention that pools, under a person's hands: each act against decoding by hand, brute force, and the audits."""

from __future__ import annotations

import json
import shlex
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from assay.audits.cases import Case
from assay.audits.equal_predictions import Adversary
from assay.errors import AssayError
from assay.explainers import EXPLAINERS, USUAL
from assay.intervene.edits import ACTS, Act
from assay.models.store import Opened
from assay.run import workbench
from assay.run.explaining import explain
from assay.run.workbench import Workbench
from assay.serve.live import LiveModel
from tests import builders, pretrained
from tests.workbenches import CLASSES, TEXT, batch, pooled, query, softmax, tokeniser


def attend(bench: Workbench, act: Act, text: str = TEXT) -> dict:
    found = bench.attend(text, query(bench), act)
    assert json.loads(json.dumps(found, allow_nan=False)) == json.loads(json.dumps(found))
    return found


def decoded(bench: Workbench, weights: list[float], text: str = TEXT) -> list[float]:
    """What the model answers with these weights, by its own decoder."""
    network, given = bench.model.network, batch(bench, text, query(bench))
    states = network.states(network.embed(given), given)
    return softmax(network.decode(states, torch.tensor([weights], dtype=torch.float64)))


def moved(found: dict) -> tuple[float, float]:
    """How far answer and attention moved, with numpy and scipy."""
    before, after = (np.array(list(found[side].values())) for side in ("before", "after"))
    apart = jensenshannon(found["observed"], found["weights"]) ** 2
    return float(abs(before - after).sum() / 2), float(apart)


@pytest.mark.parametrize("kind", builders.KINDS)
def test_the_attention_as_it_is_is_that_of_the_model(kind) -> None:
    bench = pooled(kind)
    found, network = attend(bench, Act()), bench.model.network
    given = batch(bench, TEXT, query(bench))
    output = network(network.embed(given), given)
    np.testing.assert_allclose(found["observed"], output.attention[-1][0].tolist(), atol=1e-12)
    np.testing.assert_allclose(list(found["before"].values()), output.probabilities[0].tolist(), atol=1e-12)
    assert found["weights"] == found["observed"]
    assert found["after"] == found["before"]
    assert found["tvd"] == found["jsd"] == 0
    assert found["predicted_before"] == CLASSES[int(output.logits.argmax())]
    assert "".join(found["words"]) == TEXT.replace(" ", "")


@pytest.mark.parametrize("kind", builders.KINDS)
def test_set_uniform_permute_and_erase_are_what_decoding_by_hand_gives(kind) -> None:
    bench = pooled(kind)
    observed = np.array(attend(bench, Act())["observed"])
    count = len(observed)
    others = observed.copy()
    others[1] = 0
    bent = others * 0.7 / others.sum() if others.sum() > 0 else np.full(count, 0.7 / (count - 1))
    bent[1] = 0.3
    expected = {
        "set": (Act("set", {1: 0.3}), bent),
        "uniform": (Act("uniform"), np.full(count, 1 / count)),
        "erase": (Act("erase", items=(1,)), others / others.sum() if others.sum() > 0 else others),
    }
    for act, weights in expected.values():
        found = attend(bench, act)
        np.testing.assert_allclose(found["weights"], weights, atol=1e-12)
        np.testing.assert_allclose(list(found["after"].values()), decoded(bench, weights.tolist()), atol=1e-10)
        assert (found["tvd"], found["jsd"]) == pytest.approx(moved(found), abs=1e-9)
        assert found["kind"] == "exact"
    shuffled = attend(bench, Act("permute", seed=3))
    np.testing.assert_allclose(sorted(shuffled["weights"]), sorted(observed), atol=1e-12)
    np.testing.assert_allclose(list(shuffled["after"].values()), decoded(bench, shuffled["weights"]), atol=1e-10)
    assert shuffled["weights"] == attend(bench, Act("permute", seed=3))["weights"]
    assert shuffled["weights"] != attend(bench, Act("permute", seed=4))["weights"]


def test_all_that_can_become_of_the_others_is_said() -> None:
    bench = pooled("lstm")
    count = len(attend(bench, Act())["items"])
    assert "share the rest as before" in attend(bench, Act("set", {0: 0.4}))["note"]
    below = attend(bench, Act("set", dict.fromkeys(range(count), 0.05)))
    assert "divided by their sum" in below["note"]
    np.testing.assert_allclose(below["weights"], 1 / count)
    nothing = attend(bench, Act("set", dict.fromkeys(range(count), 0.0)))
    assert "nothing" in nothing["note"]
    np.testing.assert_allclose(list(nothing["after"].values()), decoded(bench, [0.0] * count), atol=1e-10)
    erased = attend(bench, Act("erase", items=tuple(range(count))))
    assert erased["after"] == nothing["after"]
    assert erased["jsd"] == nothing["jsd"] == pytest.approx(np.log(2))
    alone = attend(pooled("lstm-sparse"), Act("set", {0: 0.4}), "w1 w2")
    assert sum(alone["weights"]) == pytest.approx(1)


def test_others_without_weight_share_the_rest_evenly() -> None:
    bench = Workbench(pooled("lstm").model, "lstm")
    attend(bench, Act())
    ready = bench._texts.get((TEXT, None), pytest.fail)
    ready.pooling.weights[0] = torch.tensor([1.0, *[0.0] * (ready.pooling.weights.shape[1] - 1)])
    found = attend(bench, Act("set", {0: 0.4}))
    np.testing.assert_allclose(found["weights"][1:], 0.6 / (len(found["weights"]) - 1))
    assert "evenly" in found["note"]


@pytest.mark.parametrize(("classes", "kind"), [(2, "exact"), (3, "bracket"), (4, "lower bound")])
@pytest.mark.parametrize("network", ["lstm", "hierarchical-gru", "paired-lstm", "lstm-sparse"])
def test_the_furthest_attention_has_the_numbers_of_the_audit(network, classes, kind) -> None:
    bench = pooled(network, classes)
    found = attend(bench, Act("furthest", epsilon=0.02))
    answer = Adversary(epsilon=0.02)(Case(bench.model.network, batch(bench, TEXT, query(bench)), {}))
    for name in ("jsd", "jsd_upper", "tvd"):
        assert found[name] == pytest.approx(answer.measures[name][0], abs=1e-9)
    assert found["kind"] == kind
    assert found["tvd"] <= 0.02 + 1e-9
    np.testing.assert_allclose(list(found["after"].values()), decoded(bench, found["weights"]), atol=1e-10)
    assert (found["tvd"], found["jsd"]) == pytest.approx(moved(found), abs=1e-9)


def brute_force(bench: Workbench, text: str) -> int | None:
    """The size of a smallest set of items whose erasure changes the decision."""
    observed = np.array(attend(bench, Act(), text)["observed"])
    decision = int(np.argmax(decoded(bench, observed.tolist(), text)))
    for size in range(1, len(observed) + 1):
        for chosen in combinations(range(len(observed)), size):
            left = observed.copy()
            left[list(chosen)] = 0
            left = left / left.sum() if left.sum() > 0 else left
            if int(np.argmax(decoded(bench, left.tolist(), text))) != decision:
                return size
    return None


@pytest.mark.parametrize("kind", ["lstm", "average", "hierarchical-gru", "lstm-sparse", "structured"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_set_that_flips_is_as_small_as_brute_force_finds(kind, classes) -> None:
    bench = pooled(kind, classes)
    for text in ("w1 w2. w3 w4 w5.", "w11 w5. w6. w7", "w30 w31. w32"):
        found, size = attend(bench, Act("flip"), text), brute_force(bench, text)
        assert found["kind"] == "exact"
        assert (found["predicted_after"] != found["predicted_before"]) == (size is not None)
        assert len(found["chosen"]) == (size or 0)
        if size is None:
            assert found["note"].startswith("Whichever")
            assert found["weights"] == found["observed"]
        else:
            assert found["after"] == attend(bench, Act("erase", items=tuple(found["chosen"])), text)["after"]


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_likeliest_attention_reaches_what_it_says_and_random_attention_does_not_exceed_it(classes) -> None:
    bench = pooled("lstm", classes)
    values = np.array([decoded(bench, row) for row in np.eye(len(attend(bench, Act())["items"])).tolist()])
    drawn = np.random.default_rng(0).dirichlet(np.full(len(values), 0.3), 200)
    seen = np.array([decoded(bench, row) for row in drawn.tolist()]).max(0)
    for number, name in enumerate(CLASSES[:classes]):
        found = attend(bench, Act("likeliest", target=name))
        assert found["target"] == name
        assert found["after"][name] == pytest.approx(found["reach"][name], abs=1e-9)
        assert found["reach"][name] >= values[:, number].max() - 1e-12
        assert found["reach_upper"][name] >= max(found["reach"][name], seen[number]) - 1e-12
        assert found["reach_upper"][name] - found["reach"][name] < 1e-6
        if classes == 2:
            assert found["kind"] == "exact"
            assert found["reach"][name] == pytest.approx(values[:, number].max(), abs=1e-12)
    unasked = attend(bench, Act("likeliest"))
    rivals = {name: reach for name, reach in unasked["reach"].items() if name != unasked["predicted_before"]}
    assert unasked["target"] == max(rivals, key=rivals.__getitem__)


def test_of_many_classes_only_one_is_made_likeliest(monkeypatch) -> None:
    monkeypatch.setattr("assay.run.attending.MOST", 3)
    bench = pooled("lstm", 5)
    assert list(attend(bench, Act("likeliest", target="odd"))["reach"]) == ["odd"]
    (rival,) = attend(bench, Act("likeliest"))["reach"]
    assert rival != attend(bench, Act())["predicted_before"]


def test_sentences_are_the_items_of_a_hierarchy() -> None:
    found = attend(pooled("hierarchical-gru"), Act("erase", items=(1,)))
    assert found["items"] == ["w1 w2 w3.", "w4 w5 w6.", "w7 w8."]
    assert found["item_of"] == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2]
    assert len(found["observed"]) == 3
    assert found["note"].startswith("1 sentence gets no attention")
    assert pooled("hierarchical-gru").about["items"] == "sentences"


def test_attention_over_the_words_of_a_transformer_pools() -> None:
    bench = Workbench(Opened(pretrained.attentive(), pretrained.tokeniser(), CLASSES[:3]), "attentive")
    assert bench.about["attention"] == "pooled"
    assert bench.about["layers"] == 0
    text = "A very unwatchable film"
    found = bench.attend(text, None, Act("set", {2: 0.8}))
    assert found["words"] == ["A", "very", "unwatchable", "film"]
    network, given = bench.model.network, batch(bench, text)
    states = network.states(network.embed(given), given)
    expected = softmax(network.decode(states, torch.tensor([found["weights"]], dtype=torch.float64)))
    np.testing.assert_allclose(list(found["after"].values()), expected, atol=1e-10)
    assert bench.attend(text, None, Act("furthest"))["kind"] == "bracket"


MISTAKES = {
    "no word 40": Act("set", {40: 0.5}),
    "no word 11": Act("erase", items=(3, 11)),
    "layer, head": Act("uniform", layer=0),
    "leave layer, head": Act("flip", place=1),
    "Unknown class": Act("likeliest", target="lovely"),
}


@pytest.mark.parametrize("sentence", MISTAKES)
def test_what_is_not_there_is_refused_in_one_sentence(sentence) -> None:
    with pytest.raises(AssayError, match=sentence):
        attend(pooled("lstm"), MISTAKES[sentence])


BAD = {"empty": ("", None), "long": ("w1 " * 1001, None), "bytes": ("w1 \udcff", None), "pair": ("w1", "w2")}


@pytest.mark.parametrize("case", BAD)
def test_texts_that_cannot_be_read_are_refused_as_in_explaining(case) -> None:
    bench, (text, asked) = pooled("lstm"), BAD[case]
    sentences = []
    for work in (lambda: bench.attend(text, asked, Act()), lambda: explain(bench.model, text, USUAL, query=asked)):
        with pytest.raises(AssayError) as caught:
            work()
        sentences.append(str(caught.value))
    assert sentences[0] == sentences[1]
    with pytest.raises(AssayError, match="reads pairs"):
        pooled("paired-lstm").attend("w1", None, Act())


def test_only_entities_of_the_text_are_candidates_of_a_cloze_question() -> None:
    entities = tuple(f"@entity{number}" for number in range(3))
    bench = Workbench(Opened(builders.kind("paired-lstm", 3), tokeniser(), entities), "cloze")
    found = bench.attend("w1 @entity0 w2 @entity2 w3", "w4 @placeholder", Act("likeliest"))
    assert found["before"]["@entity1"] == found["after"]["@entity1"] == 0
    assert found["reach"]["@entity1"] == 0
    assert found["target"] != "@entity1"


def test_a_text_is_read_once_and_few_texts_are_kept(monkeypatch) -> None:
    monkeypatch.setattr(workbench, "TEXTS", 2)
    bench = Workbench(pooled("lstm").model, "lstm")
    calls = []
    network = bench.model.network
    states = type(network).states
    monkeypatch.setattr(type(network), "states", lambda *given: calls.append(1) or states(*given))
    for weight in (0.1, 0.2, 0.3):
        attend(bench, Act("set", {0: weight}))
    once = len(calls)
    assert once == 1
    for text in ("w1", "w2", "w3"):
        attend(bench, Act(), text)
    assert len(calls) == once + 3
    attend(bench, Act(), "w2")
    assert len(calls) == once + 3
    attend(bench, Act(), "w1")
    assert len(calls) == once + 4


def test_it_is_what_the_app_asks_for() -> None:
    bench = pooled("lstm")
    assert isinstance(bench, LiveModel)
    about = bench.about
    json.dumps(about)
    assert about["name"] == "lstm"
    assert about["classes"] == ["bad", "good"]
    assert about["attention"] == "pooled"
    assert not about["paired"]
    assert pooled("paired-lstm").about["paired"]
    assert about["acts"] == dict.fromkeys(ACTS)
    assert [each["name"] for each in about["explainers"]] == list(EXPLAINERS)
    reasons = {each["name"]: each["why_not"] for each in about["explainers"]}
    assert reasons["attention"] is None
    assert reasons["rollout"] == "The model has no stack of self-attention layers."
    assert about["usual"] == list(USUAL)
    assert all(each["meaning"] for each in about["explainers"])


def test_explanations_are_those_of_the_command_line_with_the_command_beside() -> None:
    bench = Workbench(pooled("paired-lstm").model, "my models/a b", ("--device", "cpu"))
    found = bench.explain(TEXT, "-w9 'w10'", ["attention", "leave_one_out"], "good")
    expected = explain(bench.model, TEXT, ["attention", "leave_one_out"], target="good", query="-w9 'w10'").json()
    assert {name: found[name] for name in expected} == expected
    words = shlex.split(found["command"])
    assert words[:6] == ["assay", "explain", "--model", "my models/a b", "--device", "cpu"]
    assert words[6:] == ["--query=-w9 'w10'", "--explainers", "attention,leave_one_out", "--target", "good", TEXT]
    assert list(bench.explain(TEXT, "w9")["scores"]) == list(USUAL)
    with pytest.raises(AssayError, match="Unknown class"):
        bench.explain(TEXT, "w9", ["attention"], "lovely")


def test_the_command_of_an_act_says_all_of_it() -> None:
    act = Act("set", {3: 0.5, 7: 1 / 3})
    words = shlex.split(pooled("lstm").attend(f"-{TEXT}", None, act)["command"])
    assert words[:2] == ["assay", "attend"]
    assert words[words.index("--weights") + 1] == f"3=0.5,7={1 / 3!r}"
    assert words[-2:] == ["--", f"-{TEXT}"]
    erase = shlex.split(attend(pooled("lstm"), Act("erase", items=(1, 2)))["command"])
    assert erase[erase.index("--items") + 1] == "1,2"
    assert "--epsilon=0.05" in attend(pooled("lstm"), Act("furthest", epsilon=0.05))["command"]
    assert "--seed=3" in attend(pooled("lstm"), Act("permute", seed=3))["command"]

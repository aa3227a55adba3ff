"""Word-level objectives: which models are compared, and each number computed again from their parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import average_precision_score

from assay.audits import AUDITS, USUAL_AUDITS
from assay.audits.cases import Resources, question
from assay.audits.findings import classes_told, summarise
from assay.audits.word_level import Decoding, WordLevel, word_states
from assay.data.batches import collate, tokenise
from assay.errors import AssayError
from assay.intervene.adversary import jsd
from assay.metrics.information import Words
from assay.models import recipes
from assay.models.recipes import Recipe
from assay.models.workers import WORKERS
from tests import builders
from tests.audits import small_resources

EVERY = ("concat", "tying", "mlm", "conicity", "diversity")
STRENGTHS = {"tying": 1.0, "mlm": 0.5, "conicity": 0.2, "diversity": 0.3}
AUDIT = WordLevel(variants=EVERY, epsilons=(0.01, 0.2), words=20, tokens=1500, **STRENGTHS)


@pytest.fixture(scope="module", autouse=True)
def one_at_a_time():
    """So small are the models that starting a process for each takes longer than training it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(WORKERS, "1")
        yield


@pytest.fixture(scope="module")
def prepared(one_at_a_time):
    return AUDIT.prepared(small_resources.resources({}))


@pytest.fixture(scope="module")
def case():
    return replace(small_resources.case(small_resources.resources({})), planted=True)


@pytest.fixture(scope="module")
def measures(prepared, case):
    return prepared(case).measures


def sized(**training):
    """The recipe of the resources with states as large as embeddings, which have 8 dimensions."""
    parts = replace(small_resources.RECIPE.architecture, hidden=4)
    return Recipe(parts, small_resources.RECIPE.text, replace(small_resources.RECIPE.training, **training))


def test_each_model_is_that_of_the_recipe_with_one_change(prepared):
    base = sized()
    expected = {
        "base": base,
        "concat": replace(base, architecture=replace(base.architecture, concat=True)),
        **{name: sized(**{name: strength}) for name, strength in STRENGTHS.items()},
    }
    assert list(prepared.rivals) == list(expected)
    assert AUDIT.recipes(small_resources.RECIPE) == expected
    for name in ("base", "tying"):
        again = recipes.train(small_resources.corpus(), expected[name]).network.state_dict()
        found = prepared.rivals[name].network.state_dict()
        assert all(torch.equal(again[part], found[part]) for part in again)
    assert prepared.rivals["concat"].network.decoder.in_features == 16


def test_without_tying_the_audited_model_is_the_base():
    resources = small_resources.resources({})
    free = WordLevel(variants=("mlm",), epsilons=(), words=20, tokens=500).prepared(resources)
    assert free.rivals["base"].network is resources.model.network
    assert free.rivals["mlm"].network.architecture.hidden == small_resources.RECIPE.architecture.hidden
    another = WordLevel(variants=("mlm",), seed=3)
    assert (
        another.recipes(small_resources.RECIPE)["base"] != small_resources.RECIPE
    )  # it is trained from the plan's seed


def test_an_objective_of_the_audited_model_is_not_that_of_the_base():
    tied = sized(tying=3.0, mlm=2.0)
    tied = replace(tied, architecture=replace(tied.architecture, concat=True))
    assert AUDIT.recipes(tied) == AUDIT.recipes(small_resources.RECIPE)


def test_the_measures_are_those_that_were_promised(measures):
    each = ["right", "information", "information_shuffled", "median_tvd", "jsd@0.01", "jsd@0.2", "auprc"]
    gains = ["right_gain", "median_tvd_gain", "auprc_gain"]
    expected = {f"{measure}:{name}" for name in ("base", *EVERY) for measure in each}
    assert measures.keys() == expected | {f"{measure}:{name}" for name in EVERY for measure in gains}


@pytest.mark.parametrize("name", ["base", "concat", "tying"])
def test_right_and_truth_are_counted_text_by_text(name, prepared, case, measures):
    network, batch = prepared.rivals[name].network, case.batch
    output = network(network.embed(batch), batch)
    for row, length in enumerate(batch.lengths.tolist()):
        assert measures[f"right:{name}"][row] == float(output.logits[row].argmax() == batch.labels[row])
        weights = output.attention[-1][row, :length].detach().numpy()
        expected = average_precision_score(batch.truth[row, :length].numpy(), weights)
        assert measures[f"auprc:{name}"][row] == pytest.approx(expected)
    gain = measures["auprc:tying"] - measures["auprc:base"]
    assert measures["auprc_gain:tying"] == pytest.approx(gain)


def test_the_median_change_is_that_of_attention_shuffled_anew(prepared, case, measures):
    """Another hundred shuffles, one at a time, through the whole network."""
    network, batch = prepared.rivals["tying"].network, case.batch
    generator = np.random.default_rng(5)
    with torch.no_grad():
        x = network.embed(batch)
        output = network(x, batch)
        changes = []
        for _ in range(100):
            orders = [torch.from_numpy(generator.permutation(length)) for length in batch.lengths.tolist()]

            def mixed(weights, mask, orders=orders):
                rows = [row.clone() for row in weights]
                for row, order in zip(rows, orders, strict=True):
                    row[: len(order)] = row[order]
                return torch.stack(rows)

            changed = network(x, batch, mixed).probabilities
            changes.append((changed - output.probabilities).abs().sum(-1) / 2)
    medians = torch.stack(changes).median(0).values.numpy()
    assert measures["median_tvd:tying"].mean() == pytest.approx(medians.mean(), rel=0.15)
    assert np.corrcoef(measures["median_tvd:tying"], medians)[0, 1] > 0.9


def test_no_attention_within_epsilon_is_further_than_the_one_found(prepared, case, measures):
    """Brute force: many attentions drawn at random, of which those within ε count; larger ε allow more."""
    network, batch = prepared.rivals["mlm"].network, case.batch
    random = torch.distributions.Dirichlet(torch.full((6,), 0.5))
    torch.manual_seed(0)
    tried = 0
    with torch.no_grad():
        x = network.embed(batch)
        base = network(x, batch)
        for _ in range(200):
            length = batch.ids.shape[1]
            drawn = random.sample((len(batch), length))[..., 0] ** 4 * batch.mask
            drawn = drawn / drawn.sum(-1, keepdim=True)
            moved = network(x, batch, lambda weights, mask, drawn=drawn: drawn.to(weights)).probabilities
            change = ((moved - base.probabilities).abs().sum(-1) / 2).numpy()
            distance = jsd(drawn.double(), base.attention[-1].double()).numpy()
            for epsilon in (0.01, 0.2):
                within = change <= epsilon
                tried += within.sum()
                assert (distance[within] <= measures[f"jsd@{epsilon:g}:mlm"][within] + 1e-6).all()
    assert tried > 100
    assert (measures["jsd@0.2:mlm"] >= measures["jsd@0.01:mlm"] - 1e-9).all()


def test_information_is_that_of_another_librarys_decoder(case):
    """One shrinkage, the training texts read one by one, and the entropy of the audited words counted by hand."""
    resources = small_resources.resources({})
    network, chosen = resources.model.network, Words(common=15, shrinkages=(0.1,))
    decoding = Decoding.of(resources, chosen, 1500, seed=0)
    states, words = [], []
    for row in decoding.texts:
        batch = collate([row])
        states.extend(network.states(network.embed(batch), batch)[0].detach().double().numpy())
        words.extend(row.ids.tolist())
    states, words = np.array(states), np.array(words)
    assert 1000 < len(words) < 2500
    often = sorted(np.unique(words), key=lambda word: (-(words == word).sum(), word))[:15]
    oracle = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1)
    oracle.fit(states[np.isin(words, often)], words[np.isin(words, often)])
    held = network.states(network.embed(case.batch), case.batch).detach().double().numpy()
    texts = [[t for t in range(n) if int(case.batch.ids[row, t]) in often] for row, n in enumerate(case.batch.lengths)]
    rates = dict.fromkeys(often, 0.0)
    for row, places in enumerate(texts):
        for t in places:
            rates[int(case.batch.ids[row, t])] += 1 / len(places) / sum(map(bool, texts))
    found, _ = decoding(network).bits(case.batch)
    for row, places in enumerate(texts):
        bits = []
        for t in places:
            word = int(case.batch.ids[row, t])
            told = oracle.predict_log_proba(held[row, t][None])[0, list(oracle.classes_).index(word)]
            bits.append((told - np.log(rates[word])) / np.log(2))
        assert found[row] == pytest.approx(np.mean(bits), abs=1e-5)


def test_what_stands_for_a_word_has_its_embedding_beside_it_with_concat(prepared, case):
    network = prepared.rivals["concat"].network
    torch.testing.assert_close(word_states(network, case.batch)[..., 8:], network.embed(case.batch))
    for kind in ("hierarchical-gru", "paired-lstm", "transformer"):
        model, batch = builders.kind(kind), builders.texts()
        assert word_states(model, batch).shape == (*batch.ids.shape, model.words_encoder.size)


def test_shuffled_words_tell_nothing_and_no_state_more_than_the_entropy(measures, case):
    for name in ("base", *EVERY):
        assert measures[f"information_shuffled:{name}"].mean() < 0.05
        assert 1 < measures[f"information:{name}"].mean() < np.log2(20)
    assert measures["information:concat"].mean() > measures["information:base"].mean()


def test_more_classes_have_fewer_epsilons_and_a_lower_bound():
    assert [WordLevel().kind(classes) for classes in (2, 3, 4)] == ["sample", "lower bound", "lower bound"]
    whole = small_resources.corpus()
    four = replace(whole, classes=("a", "b", "c", "d"))
    relabel = lambda texts: tuple(replace(text, label=place % 4) for place, text in enumerate(texts))  # noqa: E731
    four = replace(four, train=relabel(whole.train[:40]), dev=relabel(whole.dev[:8]), test=relabel(whole.test[:4]))
    recipe = replace(sized(), training=replace(small_resources.RECIPE.training, epochs=1))
    model = recipes.train(four, recipe)
    rows, _ = tokenise(four.test, model.tokeniser, 99)
    resources = Resources(model, {}, rows, four)
    found = (
        WordLevel(variants=("tying",), words=5, tokens=200)
        .prepared(resources)(small_resources.case(resources))
        .measures
    )
    assert {name.split(":")[0] for name in found if "@" in name} == {"jsd@0.01", "jsd@0.1", "jsd@0.5"}
    assert not any(name.startswith("auprc") for name in found)  # it is not said that the words decide


def test_a_second_preparation_trains_nothing(tmp_path, case, measures, monkeypatch):
    fewer = replace(AUDIT, variants=("tying",))
    fewer.prepared(small_resources.resources({}, tmp_path))
    monkeypatch.setattr(recipes, "fit", lambda *_: pytest.fail("trained again"))
    again = fewer.prepared(small_resources.resources({}, tmp_path))(case).measures
    assert {name.split(":")[1] for name in again} == {"base", "tying"}
    for name, values in again.items():
        np.testing.assert_array_equal(values, measures[name], err_msg=name)


def test_where_it_cannot_be_asked_it_says_why(case):
    resources = small_resources.resources({})
    assert "not at hand" in WordLevel().unfit(case)
    assert "not at hand" in WordLevel().prepared(replace(resources, corpus=None)).unfit(case)
    assert "trained anew" in WordLevel().unfit(replace(case, model=small_resources.Foreign()))
    for parts, words in (
        ({"encoder": "none"}, "no encoder"),
        ({"encoder": "cnn", "embedding": 12}, "only if 8 divides"),
    ):
        other = replace(small_resources.RECIPE, architecture=replace(small_resources.RECIPE.architecture, **parts))
        other = replace(other, training=replace(other.training, epochs=1))
        assert words in AUDIT.prepared(replace(resources, model=recipes.train(small_resources.corpus(), other))).unfit(
            case
        )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"variants": ("tieing",)}, "tieing"),
        ({"tying": float("nan")}, "strength of 'tying'"),
        ({"mlm": -1.0}, "strength of 'mlm'"),
        ({"epsilons": (0.1, 1.5)}, "epsilon"),
        ({"words": 1}, "at least 2 words"),
    ],
)
def test_options_that_cannot_be_are_refused(wrong, words):
    with pytest.raises(AssayError, match=words):
        WordLevel(**wrong)


def test_it_is_known_by_name_and_told_over_all_texts(measures, case):
    assert isinstance(AUDITS["word_level"], WordLevel) and "word_level" not in USUAL_AUDITS
    assert question(WordLevel()).endswith("?")
    found = summarise("word_level", "sample", measures, case.predicted.numpy(), classes_told(WordLevel(), ("a", "b")))
    assert {finding.group for finding in found} == {"all"}
    gains = [finding for finding in found if finding.measure.endswith("_gain")]
    assert gains and all(finding.p_value is not None for finding in gains)

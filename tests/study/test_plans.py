"""Plans: what they expand to, what a trial is called, and what each mistake says."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import AssayError
from assay.study.plans import Question, StudyPlan, plan_of, read, toml
from assay.study.trials import AuditSet, Kind, Source, Trial
from tests.study import small

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
few = settings(max_examples=25)
drawn = st.fixed_dictionaries(
    {
        "corpus": st.fixed_dictionaries(
            {
                "name": st.sampled_from(["planted:keyword", "sst", "hf:some/one"]),
                "train": st.none() | st.integers(1, 999),
                "joined": st.booleans(),
                "shown": words,
                "epsilon": st.none() | st.floats(0, 0.99),
            }
        ),
        "options": st.fixed_dictionaries(
            {},
            optional={
                "hidden": st.integers(1, 64),
                "frozen": st.booleans(),
                "learning_rate": st.floats(1e-9, 1e9),
                "encoder": st.sampled_from(["lstm", "average"]),
            },
        ),
        "kind": words,
        "seed": st.integers(0, 99),
        "data_seed": st.integers(0, 99),
        "asked": st.fixed_dictionaries(
            {
                "name": words,
                "explainers": st.sampled_from([("attention",), ("random", "lime(samples=5, seed=1)")]),
                "audits": st.sampled_from([("erasure",), ("agreement", "erasure")]),
                "limit": st.none() | st.integers(1, 99),
                "epsilon": st.floats(0, 0.99),
            }
        ),
    }
)


def built(held: dict) -> Trial:
    """Not by a strategy: what is built may draw numbers of its own."""
    kind = Kind(held["kind"], tuple(sorted(held["options"].items())))
    return Trial(Source(**held["corpus"]), kind, held["seed"], AuditSet(**held["asked"]), held["data_seed"])


def test_a_plan_is_every_corpus_with_every_model_seed_and_set_of_audits():
    plan = small.grid(
        corpora=["planted:keyword", {"name": "sst", "train": 10}],
        models={"lstm": {}, "average": {"encoder": "average"}},
        seeds=[0, 1, 2],
        audits={"few": {"limit": 10}, "many": {"limit": 100}},
    )
    cells = {(t.corpus.title, t.kind.name, t.seed, t.audit_set.name) for t in plan.trials}
    assert len(plan.trials) == len(cells) == 2 * 2 * 3 * 2
    assert ("sst (10 texts)", "average", 2, "many") in cells
    assert len({t.identity for t in plan.trials}) == 24
    assert len({t.model_identity for t in plan.trials}) == 12


def test_a_corpus_may_have_an_epsilon_of_its_own_which_is_part_of_the_trial_and_not_of_the_model():
    plain = small.grid(corpora=["sst", "babi1"], audits={"limit": 3, "epsilon": 0.01})
    own = small.grid(corpora=["sst", {"name": "babi1", "epsilon": 0.05}], audits={"limit": 3, "epsilon": 0.01})
    same = small.grid(corpora=["sst", {"name": "babi1", "epsilon": 0.01}], audits={"limit": 3, "epsilon": 0.01})
    assert [trial.audit_set.plan(0).epsilon for trial in own.trials] == [0.01, 0.05]
    assert [trial.audit_set.limit for trial in own.trials] == [3, 3]
    assert own.trials[0] == plain.trials[0]
    assert own.trials[1].identity != plain.trials[1].identity
    assert own.trials[1].model_identity == plain.trials[1].model_identity
    assert same.trials[1].identity == plain.trials[1].identity
    assert [Trial.of(trial.json()) for trial in own.trials] == list(own.trials)


def test_without_audits_or_seeds_a_plan_has_the_usual_ones():
    plan = small.grid()
    assert plan.trials == (Trial(Source("planted:keyword"), plan.models[0], 0, AuditSet("audits")),)


def test_a_finished_model_is_put_to_the_audits_once_whatever_the_seeds(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.json").write_text("{}")
    given = {"corpora": ["sst"], "models": {"theirs": {"path": "model"}, "lstm": {}}, "seeds": [3, 4]}
    plan = plan_of(given, tmp_path)
    assert [(t.kind.name, t.seed) for t in plan.trials] == [("theirs", 3), ("lstm", 3), ("lstm", 4)]


def test_neither_names_nor_the_order_of_entries_make_another_trial():
    first = small.grid(models={"a": {"hidden": 8, "epochs": 2}}, audits={"x": {"limit": 3, "epsilon": 0}})
    second = small.grid(models={"b": {"epochs": 2, "hidden": 8}}, audits={"y": {"epsilon": 0.0, "limit": 3}})
    assert [t.identity for t in first.trials] == [t.identity for t in second.trials]
    assert [t.title for t in first.trials] != [t.title for t in second.trials]


@pytest.mark.parametrize(
    "change",
    [
        {"corpora": ["planted:negation"]},
        {"corpora": [{"name": "planted:keyword", "train": 9}]},
        {"corpora": [{"name": "planted:keyword", "joined": True}]},
        {"models": {"lstm": {"hidden": 12}}},
        {"models": {"lstm": {"hidden": 8, "learning_rate": 0.1}}},
        {"models": {"lstm": {"base": "minilm"}}},
        {"seeds": [1]},
        {"data_seed": 1},
        {"audits": {"limit": 9}},
        {"audits": {"epsilon": 0.02}},
        {"audits": {"explainers": ["attention"]}},
        {"audits": {"explainers": ["lime(samples=7)"]}},
        {"audits": {"audits": ["erasure"]}},
    ],
)
def test_every_option_makes_another_trial(change):
    usual, other = small.grid(), small.grid(**change)
    assert usual.trials[0].identity != other.trials[0].identity
    of_audits = "audits" in change
    assert (usual.trials[0].model_identity == other.trials[0].model_identity) == of_audits


def test_a_file_is_what_it_holds_wherever_it_lies(tmp_path):
    small.texts(tmp_path / "a.csv")
    (tmp_path / "deeper").mkdir()
    small.texts(tmp_path / "deeper" / "b.csv")
    models = {"lstm": {}}

    def identity(name: str, beside: Path) -> str:
        return plan_of({"corpora": [name], "models": models}, beside).trials[0].identity

    first = identity("a.csv", tmp_path)
    assert first == identity("b.csv", tmp_path / "deeper") == identity("deeper/b.csv", tmp_path)
    small.texts(tmp_path / "a.csv", rows=61)
    assert identity("a.csv", tmp_path) != first


def test_a_finished_model_is_what_its_folder_holds(tmp_path):
    for name, held in (("one", "{}"), ("two", "{}"), ("three", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.json").write_text(held)
    given = {"corpora": ["sst"], "models": {name: {"path": name} for name in ("one", "two", "three")}}
    one, two, three = plan_of(given, tmp_path).trials
    assert one.identity == two.identity != three.identity
    assert Path(str(one.kind.path)) == tmp_path / "one"


def test_a_name_of_a_corpus_counts_more_than_a_folder_called_so(tmp_path):
    (tmp_path / "sst").mkdir()
    assert plan_of({"corpora": ["sst"], "models": {"lstm": {}}}, tmp_path).corpora == (Source("sst"),)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"seedz": [1]}, "Unknown entry of a plan 'seedz'; did you mean 'seeds'?"),
        ({"seeds": 3}, "seeds is a list of TOML, not 3."),
        ({"seeds": [True]}, "Each seed must be an integer of at least 0, got True."),
        ({"seeds": [1, 1]}, "A plan names each seed once, and at least one."),
        ({"data_seed": -1}, "The data_seed must be an integer of at least 0, got -1."),
        ({"name": "../other"}, "A plan's name is what its folder is called, without slashes, not '../other'."),
        ({"corpora": []}, "A plan names each corpus once, and at least one."),
        ({"corpora": ["planted:keywords"]}, "Unknown corpus 'planted:keywords'; did you mean 'planted:keyword'?"),
        ({"corpora": ["absent.csv"]}, "There is no file absent.csv."),
        ({"corpora": [3]}, "corpora is a table of TOML, not 3."),
        ({"corpora": [{"train": 3}]}, "An entry of corpora lacks its name."),
        ({"corpora": [{"name": "sst", "trian": 3}]}, "Unknown entry of corpora 'trian'; did you mean 'train'?"),
        (
            {"corpora": [{"name": "sst", "train": 0}]},
            "Of a corpus, train must be a number of texts of at least 1, got 0.",
        ),
        ({"corpora": [{"name": "sst", "sha256": "0"}]}, "'sst' is no file, so it has no sha256."),
        ({"models": {}}, "A plan names each model once, and at least one."),
        ({"models": {"a": {"encoder": "lstmm"}}}, "Unknown encoder 'lstmm'; did you mean 'lstm'?"),
        ({"models": {"a": {"hiden": 8}}}, "Unknown entry of models.a 'hiden'; did you mean 'hidden'?"),
        ({"models": {"a": {"hidden": "8"}}}, "hidden of models.a is a whole number, not '8'."),
        ({"models": {"a": {"epochs": 1.5}}}, "epochs of models.a is a whole number, not 1.5."),
        ({"models": {"a": {"seed": 1}}}, "The seeds of a plan are its own entry; leave seed out of the model 'a'."),
        ({"models": {"a": {"path": "gone"}}}, "The folder gone of the model 'a' does not exist."),
        (
            {"models": {"a": {"path": "x", "hidden": 8}}},
            "The model 'a' is finished, so it has a path and nothing else.",
        ),
        ({"models": {"a": {"base": "minilm", "head": "no"}}}, "Unknown head 'no'; did you mean 'own'?"),
        ({"models": {"a": {"base": "minilm", "hidden": 1}}}, "Unknown entry of models.a 'hidden';"),
        ({"audits": {"limit": "ten"}}, "limit of audits.audits is a whole number, not 'ten'."),
        ({"audits": {"explainers": "random"}}, "explainers of audits.audits is a list, not 'random'."),
        ({"audits": {"explainers": ["randon"]}}, "Unknown explainer 'randon'; did you mean 'random'?"),
        ({"audits": {"x": {"audits": ["erasuer"]}}}, "Unknown audit 'erasuer'; did you mean 'erasure'?"),
        ({"audits": {"x": {"name": "y"}, "y": {}}}, "A plan names each set of audits once, and at least one."),
        ({"questions": [{"audit": "erasure"}]}, "An entry of questions lacks its measure."),
        (
            {"questions": [{"audit": "erasur", "measure": "x"}]},
            "Unknown audit of a question 'erasur'; did you mean 'erasure'?",
        ),
    ],
)
def test_each_mistake_is_one_sentence(given, sentence):
    with pytest.raises(AssayError) as fault:
        small.grid(**given)
    assert sentence in str(fault.value)
    assert "\n" not in str(fault.value)


def test_what_is_no_plan_says_which_file_it_is(tmp_path):
    path = tmp_path / "mine.toml"
    with pytest.raises(AssayError, match=r"There is no plan .*mine\.toml\."):
        read(path)
    path.write_text("corpora = [")
    with pytest.raises(AssayError, match=r"mine\.toml cannot be read as TOML"):
        read(path)
    path.write_text("corpora = ['sst']")
    with pytest.raises(AssayError, match=r"mine\.toml: A plan needs models\."):
        read(path)


def test_a_plan_is_called_like_its_file_or_like_the_folder_of_a_plan_toml(tmp_path):
    held = "corpora = ['sst']\n[models.lstm]\n"
    for path, name in ((tmp_path / "grid.toml", "grid"), (tmp_path / "mine" / "plan.toml", "mine")):
        path.parent.mkdir(exist_ok=True)
        path.write_text(held)
        assert read(path).name == name
    path.write_text(f"name = 'other'\n{held}")
    assert read(path).name == "other"


@few
@given(drawn)
def test_a_trial_written_down_reads_back_as_the_same(held):
    trial = built(held)
    again = Trial.of(json.loads(json.dumps(trial.json())))
    assert again == trial
    assert (again.identity, again.model_identity) == (trial.identity, trial.model_identity)


@few
@given(drawn, st.lists(st.integers(0, 99), min_size=1, unique=True), words)
def test_a_plan_as_toml_reads_back_as_the_same(held, seeds, title):
    trial = built(held)
    questions = (Question("erasure", "flip", title, subjects=("attention", title)),)
    plan = StudyPlan("mine", (trial.corpus,), (trial.kind,), (trial.audit_set,), tuple(seeds), 7, questions)
    assert plan_of(tomllib.loads(toml(plan))) == plan

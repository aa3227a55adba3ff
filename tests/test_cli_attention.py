"""Attention of other kinds from the command line: options, plans in TOML, and what each mistake says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.models import store
from tests.test_cli import assay, small_models, table  # noqa: F401


@pytest.fixture
def mine(tmp_path) -> str:
    return str(table(tmp_path / "mine.csv"))


def made(folder: str = "model") -> dict[str, dict[str, object]]:
    """The recipe that a stored model was made by."""
    return json.loads((Path(folder) / store.CARD).read_text())["history"]["recipe"]


@pytest.mark.parametrize(
    ("words", "part", "name", "value"),
    [
        (("--projection", "sparsegen(-2)"), "architecture", "projection", "sparsegen(-2)"),
        (("--encoder", "transformer", "--inner", "sparsemax"), "architecture", "inner", "sparsemax"),
        (("--concat",), "architecture", "concat", True),
        (("--embedding", "16", "--tying", "0.5"), "training", "tying", 0.5),
        (("--mlm", "0.1"), "training", "mlm", 0.1),
        (("--conicity", "1"), "training", "conicity", 1.0),
        (("--diversity", "1"), "training", "diversity", 1.0),
        (("--avoid", "dull, Fine", "--deceive", "2"), "training", "avoid", ["dull", "Fine"]),
        (("--batch-size", "16"), "training", "batch_size", 16),
        (("--shape", "structured", "--rows", "3"), "architecture", "rows", 3),
        (("--shape", "spans", "--longest-span", "2"), "architecture", "longest_span", 2),
    ],
)
def test_options_reach_the_model(words, part, name, value, assay, mine):  # noqa: F811
    code, _, err = assay("train", "--corpus", mine, "--out", "model", *words)
    assert code == 0, err
    assert made()[part][name] == value


def test_a_run_is_named_after_what_makes_its_model_special(assay, mine):  # noqa: F811
    assay("train", "--corpus", mine, "--projection", "sparsegen(0.5)", "--mlm", "0.1", "--epochs", "1")
    assert [path.name for path in Path("runs").iterdir()] == ["mine-lstm-additive-sparsegen0.5-mlm0.1-0"]


def test_a_plan_holds_options_and_the_command_line_counts_more(assay, mine):  # noqa: F811
    Path("plan.toml").write_text(f'corpus = "{mine}"\nprojection = "sparsemax"\ntying = 0.5\nembedding = 16\n')
    code, _, err = assay("train", "--plan", "plan.toml", "--tying", "0.25", "--out", "model")
    assert code == 0, err
    assert made()["architecture"]["projection"] == "sparsemax"
    assert made()["training"]["tying"] == 0.25


def test_a_plan_says_what_is_audited(assay, mine):  # noqa: F811
    words = f'corpus = "{mine}"\nexplainers = ["attention", "random"]\naudits = "frozen_uniform"\nout = "run"\n'
    Path("plan.toml").write_text(words)
    code, _, err = assay("audit", "--plan=plan.toml")
    assert code == 0, err
    summary = json.loads(Path("run/summary.json").read_text())
    assert list(summary["audits"]) == ["frozen_uniform"]
    assert list(summary["explainers"]) == ["attention", "random"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tying = 'much'", "tying"),
        ("typing = 1", "typing"),
        ("tying = nan", "tying"),
        ("tying", "TOML"),
        ("[training]\ntying = 1", "training"),
    ],
)
def test_a_bad_plan_gives_one_sentence(text, told, assay, mine):  # noqa: F811
    Path("plan.toml").write_text(text)
    code, _, err = assay("train", "--plan", "plan.toml", "--corpus", mine, "--out", "model")
    assert code == 2
    assert told in err
    assert len(err.strip().splitlines()) == 1
    assert not Path("model").exists()


def test_a_plan_that_is_not_there_is_named(assay):  # noqa: F811
    code, _, err = assay("audit", "--plan", "nothing.toml")
    assert (code, "nothing.toml" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--projection", "sparsegen(1)"), "below 1"),
        (("--projection", "sparsegen(nan)"), "below 1"),
        (("--projection", "sparsegen(-inf)"), "below 1"),
        (("--projection", "sparsegen"), "needs a number"),
        (("--projection", "sparsegen(x)"), "needs a number"),
        (("--projection", "sparsemax(2)"), "takes no number"),
        (("--projection", "sparse"), "sparsemax"),
        (("--projection", "entmax(0.5)"), "entmax"),
        (("--projection", "entmax(nan)"), "entmax"),
        (("--inner", "sparsemax"), "transformer"),
        (("--tying", "-1"), "tying"),
        (("--tying", "nan"), "tying"),
        (("--tying", "0.5"), "--embedding"),
        (("--mlm", "inf"), "mlm"),
        (("--learning-rate", "nan"), "learning rate"),
        (("--learning-rate", "0"), "learning rate"),
        (("--batch-size", "0"), "batch size"),
        (("--deceive", "1"), "--avoid"),
        (("--avoid", "dull"), "--deceive"),
        (("--avoid", "unheard", "--deceive", "1"), "unheard"),
        (("--shape", "structured", "--rows", "0"), "Rows"),
        (("--shape", "spans", "--longest-span", "0"), "span"),
    ],
)
def test_a_bad_strength_gives_one_sentence_before_anything_is_trained(words, told, assay, mine):  # noqa: F811
    code, _, err = assay("train", "--corpus", mine, "--out", "model", *words)
    assert code == 2
    assert told in err
    assert len(err.strip().splitlines()) == 1
    assert not (Path("model") / store.CARD).exists()


@pytest.mark.parametrize(
    "audits",
    [
        "sparsity(strengths=(0.5, 1))",
        "sparsity(strengths=(0.5, nan))",
        "sparsity(alphas=('a',))",
        "sparsity(alphas=(1.5, (2,)))",
        "word_level(variants=())",
        "word_level(variants=('concat', 'concat'))",
        "word_level(epsilons=(2.0,))",
        "guide(strength=-1)",
        "deception(k=0)",
        "trained_adversary(seeds=-1)",
        "word_level(tying=-1)",
        "word_level(variants=('tieing',))",
        "trained_adversary(strengths=(-1,))",
        "seed_variance(seeds=0)",
        "deception(strengths=(-1,))",
    ],
)
def test_a_bad_option_of_an_audit_gives_one_sentence(audits, assay, mine):  # noqa: F811
    code, _, err = assay("audit", "--corpus", mine, "--audits", audits, "--out", "run")
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert not Path("run").exists()

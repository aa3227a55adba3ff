"""Loaders, given anything: they succeed, or say one sentence, and change nothing that was there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import assay
from assay.caching import FinishedParts
from assay.cli.app import _plan
from assay.data.corpora import corpus
from assay.data.examples import thinned
from assay.errors import AssayError, Damaged
from assay.models import recipes
from assay.models.config import Architecture, Training
from assay.models.store import Checkpoint
from assay.records import EXAMPLES, INSTANCES, SUMMARY, Record
from assay.run import api as verbs
from assay.run.explaining import explain
from assay.study.plans import read
from tests.reliability.inputs import TABLES, changed, damaged, lying, plans
from tests.reliability.studying import contents

MODEL_FILES = ("model.json", "tokenizer.json", "weights.safetensors")
FEW, MANY = 12, 400


def fuzz(drawn: st.SearchStrategy[Any], check: Callable[[Any], None], examples: int) -> None:
    """Checks so many of what is drawn, the same ones each time unless we hunt."""
    options = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize="ASSAY_HUNT" not in os.environ,  # set it to look for faults that nobody has met
        suppress_health_check=list(HealthCheck),
    )
    options(given(drawn)(check))()


def tried(load: Callable[[], Any]) -> Any:
    """What was loaded, or None where one sentence says why not."""
    try:
        return load()
    except AssayError as fault:
        assert str(fault).strip() and "\n" not in str(fault).strip() and "Traceback" not in str(fault)
        return None


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A small model in a folder."""
    place = tmp_path_factory.mktemp("model") / "model"
    recipe = recipes.Recipe(Architecture(embedding=4, hidden=4, alignment_size=4), training=Training(epochs=1))
    recipes.train(thinned(corpus("planted:keyword"), 32, 0), recipe, place)
    return place


@pytest.fixture(scope="module")
def record(model, tmp_path_factory) -> Path:
    """A finished audit of it in a folder."""
    place = tmp_path_factory.mktemp("record")
    assay.audit(model, "planted:keyword", ["attention"], ["truth"], limit=4).record.write(place)
    return place


COUNTS = [FEW, pytest.param(MANY, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("suffix", TABLES)
def test_any_table_is_a_corpus_or_a_sentence(tmp_path, suffix, count):
    path = tmp_path / f"mine{suffix}"

    def check(given: tuple[bytes, bool]) -> None:
        path.write_bytes(given[0])
        tried(lambda: corpus(str(path), whole=given[1]))
        assert path.read_bytes() == given[0]

    fuzz(st.tuples(damaged(TABLES[suffix]) | st.binary(max_size=200), st.booleans()), check, count)


@pytest.mark.parametrize("count", COUNTS)
def test_any_plan_is_a_study_or_a_sentence(tmp_path, count):
    path = tmp_path / "plan.toml"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        tried(lambda: read(path).trials)
        tried(lambda: _plan(path))
        assert path.read_bytes() == content

    fuzz(damaged(plans()) | plans() | st.binary(max_size=80), check, 3 * count)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", MODEL_FILES)
def test_any_damage_to_a_model_is_found_or_harmless(tmp_path, model, name, count):
    place = shutil.copytree(model, tmp_path / "model")
    whole = (model / name).read_bytes()
    drawn = damaged(st.just(whole)) | lying()
    if name.endswith("json"):
        drawn = damaged(st.just(whole)) | changed(json.loads(whole)).map(lambda value: json.dumps(value).encode())

    def check(content: bytes) -> None:
        (place / name).write_bytes(content)
        before = contents(place)
        opened = tried(lambda: verbs.load(place))
        if opened is not None:
            tried(lambda: explain(opened, "the film is good", ["attention"]))
        assert contents(place) == before

    fuzz(drawn, check, count)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", [SUMMARY, INSTANCES, EXAMPLES])
def test_any_damage_to_a_record_is_found_or_harmless(tmp_path, record, name, count):
    place = shutil.copytree(record, tmp_path / "record")
    whole = (record / name).read_bytes()
    drawn = damaged(st.just(whole))
    if name == SUMMARY:
        drawn |= changed(json.loads(whole)).map(lambda value: json.dumps(value).encode())

    def check(content: bytes) -> None:
        (place / name).write_bytes(content)
        opened = tried(lambda: Record.read(place))
        if opened is not None:
            opened.finding("truth", "attention", "auc")
            opened.audit_rows("truth")
        assert (place / name).read_bytes() == content

    fuzz(drawn, check, count)


@pytest.mark.parametrize("count", COUNTS)
def test_any_checkpoint_is_gone_on_from_or_refused(tmp_path, count):
    network = torch.nn.Linear(2, 2)
    optimiser = torch.optim.Adam(network.parameters())
    network(torch.ones(2)).sum().backward()
    optimiser.step()
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", {"corpus": "one"})
    best = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    checkpoint.save(network, optimiser, best, {"epoch": 1})
    whole, weights = checkpoint.path.read_bytes(), network.weight.detach().clone()

    def check(content: bytes) -> None:
        checkpoint.path.write_bytes(content)
        if tried(lambda: checkpoint.restore(network, optimiser)) is not None:
            assert torch.equal(network.weight, weights)

    fuzz(damaged(st.just(whole)) | lying(), check, count)


def test_a_flipped_bit_in_a_weight_is_found(tmp_path, model):
    place = Path(shutil.copytree(model, tmp_path / "model"))
    content = bytearray((place / "weights.safetensors").read_bytes())
    content[-1] ^= 1
    (place / "weights.safetensors").write_bytes(content)
    with pytest.raises(Damaged, match=r"weights\.safetensors is not what was stored"):
        verbs.load(place)


def test_a_model_of_any_size_is_refused_before_room_is_made_for_it(tmp_path, model):
    place = Path(shutil.copytree(model, tmp_path / "model"))
    card = json.loads((place / "model.json").read_text())
    card["architecture"]["embedding"] = 10**9  # some hundred gigabytes
    (place / "model.json").write_text(json.dumps(card))
    with pytest.raises(Damaged, match=r"does not fit model\.json"):
        verbs.load(place)


def test_a_damaged_part_of_an_audit_is_made_again(tmp_path):
    parts, table = FinishedParts(tmp_path), pa.table({"example": [1, 2, 3]})
    parts.table("one", lambda: table)
    content = bytearray((tmp_path / "parts" / "one.parquet").read_bytes())
    content[8] ^= 1
    (tmp_path / "parts" / "one.parquet").write_bytes(content)
    assert parts.table("one", lambda: table) == table
    assert parts.table("one", lambda: pytest.fail("it is there")) == table


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("long.csv", b"text,label\na good film," + b"9" * 5000 + b"\na bad film,1\n", "mixes|5,000 characters"),
        ("page.parquet", b"PAR1" + b"\0" * 40 + b"PAR1", "not a readable parquet file"),
        ("deep.jsonl", b"[" * 100_000, "not valid JSON"),
    ],
)
def test_what_once_ended_in_a_traceback_or_in_several_lines_is_one_sentence(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AssayError, match=said) as fault:
        corpus(str(tmp_path / name))
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda summary: None,
        lambda summary: [summary],
        lambda summary: summary | {"findings": None},
        lambda summary: summary | {"findings": [None]},
        lambda summary: summary | {"findings": [summary["findings"][0] | {"mean": "high"}]},
        lambda summary: summary | {"findings": [summary["findings"][0] | {"undefined": None}]},
        lambda summary: summary | {"findings": [{"audit": "truth"}]},
    ],
)
def test_a_summary_that_is_none_is_refused(tmp_path, record, change):
    place = Path(shutil.copytree(record, tmp_path / "record"))
    summary = json.loads((place / SUMMARY).read_text())
    (place / SUMMARY).write_text(json.dumps(change(summary)))
    with pytest.raises(Damaged, match=r"summary\.json"):
        Record.read(place)


def test_names_of_classes_are_words_whatever_a_card_says(tmp_path, model):
    place = Path(shutil.copytree(model, tmp_path / "model"))
    card = json.loads((place / "model.json").read_text())
    (place / "model.json").write_text(json.dumps(card | {"classes": [[], "workshop"]}))
    assert verbs.load(place).classes == ("[]", "workshop")

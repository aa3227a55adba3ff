"""Data sets through the `datasets` library, from local folders: nothing is fetched."""

from __future__ import annotations

import json

import datasets
import pytest

from assay.data.corpora import corpus
from assay.errors import AssayError


@pytest.fixture(autouse=True)
def _offline(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def rows(count: int, label=("bad", "good")) -> list[dict[str, object]]:
    return [{"text": f"text {number} is {label[number % 2]}", "label": label[number % 2]} for number in range(count)]


def test_a_folder_of_files_has_its_splits(tmp_path):
    folder = tmp_path / "reviews"
    folder.mkdir()
    for split, count in (("train", 20), ("validation", 6), ("test", 8)):
        lines = "\n".join(json.dumps(row) for row in rows(count))
        (folder / f"{split}.jsonl").write_text(lines + "\n")
    found = corpus(f"hf:{folder}")
    assert (found.name, found.classes) == ("reviews", ("bad", "good"))
    assert [len(split) for split in (found.train, found.dev, found.test)] == [20, 6, 8]
    assert found.test[3].text == "text 3 is good" and found.classes[found.test[3].label] == "good"


def test_names_of_classes_stand_for_their_numbers_and_unlabelled_rows_are_counted(tmp_path):
    features = datasets.Features(
        {"sentence": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    table = {"sentence": [f"row {number}" for number in range(40)], "label": [0, 1] * 19 + [-1, -1]}
    held = datasets.DatasetDict({"train": datasets.Dataset.from_dict(table, features=features)})
    held["unsupervised"] = held["train"]
    held.save_to_disk(str(tmp_path / "stored"))
    found = corpus(f"hf:{tmp_path / 'stored'}")
    assert found.classes == ("no", "yes")
    assert len(found.train + found.dev + found.test) == 38
    assert found.skipped == {"no label": 2}


def test_a_data_set_that_is_only_read_need_not_be_split(tmp_path):
    held = datasets.Dataset.from_list(rows(1))
    held.save_to_disk(str(tmp_path / "few"))
    found = corpus(f"hf:{tmp_path / 'few'}", whole=True)
    assert (len(found.train), len(found.test)) == (0, 1)
    with pytest.raises(AssayError, match="one class alone"):
        corpus(f"hf:{tmp_path / 'few'}")


def test_columns_can_be_named(tmp_path):
    table = [{"premise": f"a b {number}", "hypothesis": "b", "verdict": str(number % 2)} for number in range(40)]
    datasets.Dataset.from_list(table).save_to_disk(str(tmp_path / "pairs"))
    found = corpus(f"hf:{tmp_path / 'pairs'}", label_column="verdict")
    assert found.train[0].query == "b"


@pytest.mark.parametrize(("name", "hint"), [("hf:", "Name a data set"), ("hf:no/where", "could not be read")])
def test_what_is_not_there_is_told_in_one_sentence(name, hint):
    with pytest.raises(AssayError, match=hint):
        corpus(name)


def test_a_folder_without_known_splits_is_refused(tmp_path):
    held = datasets.DatasetDict({"extra": datasets.Dataset.from_list(rows(4))})
    held.save_to_disk(str(tmp_path / "odd"))
    with pytest.raises(AssayError, match="no split"):
        corpus(f"hf:{tmp_path / 'odd'}")

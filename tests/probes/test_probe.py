"""All sections together, on small invented files in the formats of the real ones."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import pytest

from assay.data import annotated as mentions
from assay.data import annotated as negation
from assay.data import annotated as treebank
from assay.data.annotated import Sentence
from assay.errors import AssayError
from assay.models.hf_models import Attentive
from assay.models.hf_subwords import SubwordTokeniser
from assay.probes.heads import PROBES, probe
from tests.probes.built import HEAD, HEADS, LAYER, LAYERS, planted
from tests.probes.planted_grammar import grammar

ROW = {
    *("relation", "direction", "n", "n_dev", "layer", "head", "accuracy", "low", "high", "dev_accuracy", "offset"),
    *("offset_accuracy", "control_accuracy", "control_low", "control_high", "chance", "every"),
}
KEYS = {
    "speech": {"n", "tags", "share", "uniform", "control"},
    "coreference": {
        *("n", "layer", "head", "accuracy", "low", "high", "nearest_accuracy", "control_accuracy", "confusion"),
        *("best_confusion", "every"),
    },
    "negation": {
        *("n", "sentences", "layer", "head", "accuracy", "low", "high", "offset", "offset_accuracy"),
        *("control_accuracy", "every"),
    },
    "pairs": {"binary", "relations"},
}


def tree(sentence: Sentence) -> str:
    rows = zip(sentence.words, sentence.tags, sentence.governors, sentence.relations, strict=True)
    return "".join(
        f"{number}\t{word}\t_\t{tag}\t_\t_\t{governor + 1}\t{relation}\t_\t_\n"
        for number, (word, tag, governor, relation) in enumerate(rows, start=1)
    )


def name(sentence: Sentence) -> str:
    """The last noun as a pronoun, its governor and another verb as names."""
    said = max(position for position, relation in enumerate(sentence.relations) if relation == "argument")
    right = sentence.governors[said]
    other = next(position for position, tag in enumerate(sentence.tags) if tag == "VERB" and position != right)
    cells = [sentence.text, *(each for position in (said, right, other) for each in _cells(sentence, position))]
    return "\t".join(("1", *cells[:5], "TRUE", *cells[5:], "FALSE", "u"))


def _cells(sentence: Sentence, position: int) -> tuple[str, str]:
    return sentence.words[position], str(sentence.spans[position][0])


def denial(sentence: Sentence) -> str:
    """A verb as the cue, and its nouns as the scope."""
    cue = next(
        governor for governor, name in zip(sentence.governors, sentence.relations, strict=True) if name == "argument"
    )
    marks = [
        (word if position == cue else "_", word if sentence.governors[position] == cue and tag == "NOUN" else "_")
        for position, (word, tag) in enumerate(zip(sentence.words, sentence.tags, strict=True))
    ]
    return "".join(
        f"x\t0\t{position}\t{word}\t{word}\tX\t*\t{one}\t{other}\t_\n"
        for position, (word, (one, other)) in enumerate(zip(sentence.words, marks, strict=True))
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    for seed, split in enumerate(("dev", "test")):
        sentences = grammar(seed, 60)
        header = "\t".join(("ID", *mentions.MENTION_COLUMNS, "URL")) + "\n"
        write(tmp_path / treebank.TREEBANK[split], "\n".join(map(tree, sentences)) + "\n")
        write(tmp_path / mentions.MENTIONS[split], header + "\n".join(map(name, sentences)) + "\n")
        write(tmp_path / negation.NEGATIONS[split], "\n".join(map(denial, sentences)) + "\n")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


@cache
def model() -> tuple[Attentive, SubwordTokeniser]:
    return planted()


@pytest.mark.usefixtures("folder")
def test_the_planted_head_is_named_by_every_section_that_asks_for_governors() -> None:
    answer = probe(*model(), list(PROBES))
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    assert (answer["layers"], answer["heads"]) == (LAYERS, HEADS)
    sections = answer["sections"]
    assert list(sections) == list(PROBES)
    for section, keys in KEYS.items():
        assert set(sections[section]) == keys
    assert all(set(row) == ROW for row in sections["relations"])
    assert (sections["relations"][0]["relation"], sections["relations"][0]["accuracy"]) == ("argument", 1.0)
    for found in (sections["relations"][0], sections["coreference"], sections["negation"]):
        assert (found["layer"], found["head"], found["accuracy"]) == (LAYER, HEAD, 1.0)
    assert sections["coreference"]["best_confusion"] == pytest.approx(0, abs=1e-6)
    assert sections["coreference"]["control_accuracy"] == pytest.approx(0.5, abs=0.1)
    assert sections["negation"]["offset_accuracy"] < 0.7 and sections["negation"]["control_accuracy"] < 0.3


@pytest.mark.usefixtures("folder")
def test_examples_show_the_head_of_the_first_row_with_a_weight_for_every_two_words() -> None:
    answer = probe(*model(), ["relations"], limit=50)
    assert set(answer["sections"]) == {"relations"}
    assert 1 <= len(answer["examples"]) <= 4
    for example in answer["examples"]:
        count = len(example["words"])
        assert len(example["governors"]) == len(example["relations"]) == count
        first = example["heads"][0]
        assert (first["layer"], first["head"], first["title"]) == (LAYER, HEAD, "argument, to governor")
        for position, (governor, relation) in enumerate(zip(example["governors"], example["relations"], strict=True)):
            row = first["weights"][position]
            assert len(row) == count
            assert relation != "argument" or max(range(count), key=row.__getitem__) == governor


@pytest.mark.usefixtures("folder")
def test_the_seed_decides_and_the_limit_takes_so_many() -> None:
    one, same, other = (probe(*model(), ["speech"], limit=20, seed=seed) for seed in (1, 1, 2))
    assert one == same != other
    assert one["sections"]["speech"]["n"] < 20 * 14


@pytest.mark.usefixtures("folder")
def test_what_cannot_be_probed_is_told_in_one_sentence() -> None:
    with pytest.raises(AssayError, match="Unknown section of a probe 'relation'; did you mean 'relations'"):
        probe(*model(), ["relation"])
    with pytest.raises(AssayError, match="needs at least one sentence, got 0"):
        probe(*model(), ["speech"], limit=0)
    answer = probe(*model(), ["relations", "pairs"], limit=1)  # too few for a table
    assert (answer["sections"]["relations"], answer["examples"]) == ([], [])
    assert answer["sections"]["pairs"]["relations"]["n"] == 0
    json.dumps(answer, allow_nan=False)


@pytest.mark.data
def test_the_real_files_can_be_probed() -> None:
    from tests import pretrained

    answer = probe(pretrained.pretrained("bert"), pretrained.tokeniser(), list(PROBES), limit=30)
    assert set(answer["sections"]) == set(PROBES)
    json.dumps(answer, allow_nan=False)

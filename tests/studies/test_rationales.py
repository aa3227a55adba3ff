"""The study of rationales on a small corpus: each cell is made once, and the page shows it beside published figures."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from assay.data.batches import Tokenised
from assay.data.examples import Corpus, Example
from assay.rationales.measuring import Selected
from assay.rationales.recipes import RECIPES
from studies.rationales import cells
from studies.rationales.__main__ import cells as asked_for
from studies.rationales.__main__ import make_all
from studies.rationales.cells import CORPORA, MODELS, SETTINGS, Cell
from studies.rationales.findings import apart, said
from studies.rationales.kept import gathered, missing, put, read
from studies.rationales.sentences import at_random, iou_f1, measured
from studies.rationales.tables import COLUMNS, SENTENCES, at_chance, page
from tests.rationales.folders import phrases

TINY = {"encoder": "average", "embedding": 6, "hidden": 4, "epochs": 1, "batch_size": 8}
COUNT = 200  # texts that accuracies of `row` are over


@cache
def reviews() -> Corpus:
    """Texts of four sentences, of which the one that tells the class is marked."""

    def example(place: int) -> Example:
        telling = f"a {('bad', 'good')[place % 2]} film ."
        parts = ["we saw it .", "it was long .", "they left early .", telling]
        text = " ".join(parts[place % 4 :] + parts[: place % 4])
        start = text.index(telling)
        return Example(text, place % 2, ((start, start + len(telling)),))

    texts = tuple(example(place) for place in range(40))
    return Corpus("movies", ("bad", "good"), texts[:24], texts[24:32], texts[32:])


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "texts", lambda name, limit: reviews() if name == "movies" else phrases())
    monkeypatch.setattr(cells, "SETTINGS", {("planted:phrase", "bilstm"): TINY, ("movies", "bilstm"): TINY})


def row(accuracy: float, f1: float = 0.4, collapse: tuple[str, ...] = (), **pooled: float) -> dict[str, Any]:
    """A result whose measures are all the same, but for the accuracy."""
    measures = {name: {"mean": f1, "n": COUNT} for name in COLUMNS if name != "iou_f1"}
    return {
        "created": "2026-11-18T00:00:00",
        "device": "cpu",
        "versions": {"torch": "2"},
        "selecting": {"rate": 0.1, "masks": 1, "rule": "top"},
        "measures": measures | {"accuracy": {"mean": accuracy, "n": COUNT}},
        "pooled": {"iou_f1_eraser": f1} | pooled,
        "collapse": list(collapse),
        "corpus": {"name": "movies", "measured": COUNT, "marked": COUNT, "majority": 0.5},
        "training": {"best_dev": 0.8, "shares": [0.1]},
    }


def lines(text: str, start: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith(start)]


def test_every_corpus_has_a_setting_for_every_model() -> None:
    assert set(SETTINGS) == {(corpus, model) for corpus in CORPORA for model in MODELS}


def test_a_cell_is_made_once_and_a_failed_one_again_when_asked(tmp_path: Path) -> None:
    cell = Cell("planted:phrase", "bilstm", "lei")
    make_all([cell], tmp_path, "cpu")
    found, stamp = read(tmp_path, cell.table)[cell.key], (tmp_path / f"{cell.table}.json").stat().st_mtime_ns
    assert found["measures"]["accuracy"]["n"] == 12
    make_all([cell], tmp_path, "cpu")
    assert (tmp_path / f"{cell.table}.json").stat().st_mtime_ns == stamp
    put(tmp_path, cell, {"failed": "no"})
    assert not missing([cell], tmp_path) and missing([cell], tmp_path, again=True) == [cell]
    make_all([cell], tmp_path, "cpu", again=True)
    assert read(tmp_path, cell.table)[cell.key]["measures"] == found["measures"]


def test_a_table_holds_all_units_and_seeds_and_the_slowest_recipe_comes_first(tmp_path: Path) -> None:
    given = [Cell("movies", "bilstm", "lei", seed, units) for units in ("word", "sentence") for seed in (0, 1)]
    assert len({cell.name for cell in given}) == 4 and given[0].name == "movies-bilstm-lei"
    for cell in given:
        put(tmp_path, cell, row(0.6 + cell.seed / 10) | {"seconds": 1.0})
    put(tmp_path, Cell("movies", "bilstm", "car"), row(0.6) | {"seconds": 9.0})
    assert [path.name for path in tmp_path.iterdir()] == ["movies-bilstm.json"]
    found = gathered(tmp_path)
    assert list(found) == [("movies", "bilstm", "word"), ("movies", "bilstm", "sentence")]
    assert set(found["movies", "bilstm", "sentence"]["lei"]) == {0, 1}
    asked = {"corpora": ["movies", "hatexplain"], "models": ["bilstm"], "recipes": ["lei", "car"]}
    wanted = asked_for(asked | {"units": ["word", "sentence"], "seeds": ["0", "1"]})
    assert {cell.units for cell in wanted if cell.corpus == "hatexplain"} == {"word"}
    left = missing([cell for cell in wanted if cell.corpus == "movies"], tmp_path)
    assert [(cell.recipe, cell.seed) for cell in left] == [("car", 0), ("car", 1), ("car", 1)]
    both = [Cell("movies", "bilstm", name, 2) for name in ("lei", "car")]
    assert [cell.recipe for cell in missing(both, tmp_path)] == ["car", "lei"]


def test_seeds_differ_and_texts_do_not(tmp_path: Path) -> None:
    make_all([Cell("movies", "bilstm", "rnp", seed) for seed in (0, 1)], tmp_path, "cpu")
    one, other = gathered(tmp_path)["movies", "bilstm", "word"]["rnp"].values()
    assert one["training"]["shares"] != other["training"]["shares"] and one["corpus"] == other["corpus"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_selects_whole_sentences(recipe: str) -> None:
    result = Cell("movies", "bilstm", recipe, units="sentence").result("cpu")
    assert result["selecting"]["units"]["kind"] == "sentence"
    assert set(SENTENCES) <= set(result["pooled"])


def test_the_page_has_a_row_for_each_recipe_and_says_what_failed(tmp_path: Path) -> None:
    put(tmp_path, Cell("movies", "bilstm", "lei"), row(0.8))
    put(tmp_path, Cell("movies", "bilstm", "fresh"), row(0.9))
    put(tmp_path, Cell("movies", "bilstm", "rnp"), {"failed": "no room"})
    text = page(gathered(tmp_path))
    rows = lines(text, "| ")
    assert [cells[0] for cells in rows] == ["recipe", "lei", "fresh"]
    assert all(len(cells) == len(COLUMNS) + 2 for cells in rows) and rows[2][2] == "**0.900**"
    assert "- rnp could not be made: no room" in text
    assert "**One seed: each row is one draw" in text


def test_several_seeds_are_a_mean_and_from_where_to_where_it_goes() -> None:
    lei = {seed: row(accuracy) for seed, accuracy in enumerate((0.7, 0.8, 0.93))}
    text = page({("hatexplain", "bilstm", "word"): {"lei": lei, "rnp": {0: row(0.75)}}})
    rows = {cells[0]: cells for cells in lines(text, "| ")}
    assert rows["lei"][1:3] == ["3", "**0.810** (0.700 to 0.930)"] and rows["rnp"][1:3] == ["1", "0.750"]
    assert "Means over 1 to 3 seeds" in text and "One seed, and so one draw, have rnp." in text


def test_published_figures_over_sentences_stand_beside_sentences_only() -> None:
    words = page({("movies", "bilstm", "word"): {"lei": {0: row(0.8)}}})
    assert "Paranjape" not in words and "0.275" not in words
    sentences = {"iou_f1_sentences_0.5": 0.123, "iou_f1_sentences_0.1": 0.234}
    text = page({("movies", "bilstm", "sentence"): {"lei": {0: row(0.8, **sentences)}}})
    assert "drawn at random" not in text
    by_chance = page({("movies", "bilstm", "sentence"): {"lei": {0: row(0.8)}}}, {"sentence": {"token_f1": 0.331}})
    drawn = lines(by_chance, "| ")[2]
    assert drawn[0] == "*as large a share of sentences drawn at random*" and drawn.count("0.331") == 1
    head, lei, published = lines(text, "| ")
    assert lei[head.index(SENTENCES["iou_f1_sentences_0.5"])] == "**0.123**"
    assert published[0].startswith("*Paranjape") and "### ERASER movies, BiLSTM, sentences" in text


def test_who_decides_at_chance_with_every_seed_is_left_out_and_named() -> None:
    guess = 0.5 + 1.9 * np.sqrt(0.25 / COUNT)
    assert at_chance(row(guess)) and not at_chance(row(0.5 + 2.1 * np.sqrt(0.25 / COUNT)))
    table = {"lei": {0: row(0.5), 1: row(0.49)}, "rnp": {0: row(0.5), 1: row(0.9)}, "mcd": {0: row(0.9), 1: row(0.9)}}
    text = page({("movies", "minilm", "word"): table})
    assert [cells[0] for cells in lines(text, "| ")] == ["recipe", "rnp", "mcd"]
    assert "(1 of 3; accuracy): lei 0.495 (0.490 to 0.500)." in text
    assert "- rnp decides at chance with 1 of 2 seeds" in text


def test_how_far_seeds_lie_apart_is_an_analysis_of_variance() -> None:
    found = np.array([[0.2, 0.3, 0.25], [0.5, 0.45, 0.55], [0.4, 0.28, 0.35], [0.6, 0.7, 0.65]])
    names = ("lei", "rnp", "mcd", "dr")
    table = {
        name: {seed: row(0.9, f1) for seed, f1 in enumerate(each)} for name, each in zip(names, found, strict=True)
    }
    groups, seeds = found.shape
    within = ((found - found.mean(1, keepdims=True)) ** 2).sum() / (groups * (seeds - 1))
    between = seeds * ((found.mean(1) - found.mean()) ** 2).sum() / (groups - 1)
    expected = (
        f"sd of seeds {within**0.5:.3f}, of recipes {((between - within) / seeds) ** 0.5:.3f} (4 recipes, 3 seeds)"
    )
    assert apart(table, "token_f1").startswith(expected)
    agree = [
        np.mean([np.sign(one[a] - one[b]) * np.sign(two[a] - two[b]) for a, b in itertools.combinations(range(4), 2)])
        for one, two in itertools.combinations(found.T, 2)
    ]
    assert f"two seeds {np.mean(agree):.2f} ({min(agree):.2f} to {max(agree):.2f})" in apart(table, "token_f1")
    told = said(table | {"car": {0: row(0.5)}}, "word")
    assert any(line.startswith("at chance: car, 1 of 1 seeds, accuracy 0.500, AUC on dev texts 0.800") for line in told)


def test_the_f1_of_sentences_is_that_of_loops() -> None:
    generator = np.random.default_rng(0)
    rows = [_text(generator, length) for length in (12, 20, 9, 15)]
    rows.append(replace(rows[0], truth=None))
    found = at_random(rows, 0.4, "sentence", generator)
    for each in found:
        ends = each.row.sentences.numpy()
        assert len(np.unique(ends[each.kept])) == np.ceil(0.4 * len(np.unique(ends)))
        assert all(len(set(each.kept[ends == sentence])) == 1 for sentence in ends)
    for overlap in (0.5, 0.1):
        assert iou_f1(found, overlap) == pytest.approx(_looped(found, overlap))
    assert iou_f1(found[-1:], 0.5) is None
    told = measured(found)
    assert told["iou_f1_sentences_0.5"] == pytest.approx(_looped(found, 0.5))
    both = [
        2 * int((each.kept & each.row.truth.numpy()).sum()) / int(each.kept.sum() + each.row.truth.sum())
        for each in found[:-1]
        if each.row.truth is not None
    ]
    assert told["token_f1"] == pytest.approx(np.mean(both))


def _text(generator: np.random.Generator, length: int) -> Tokenised:
    """A text of sentences of two to four words, and marks anywhere."""
    sentences = torch.from_numpy(np.repeat(np.arange(length), generator.integers(2, 5, length))[:length].copy())
    truth = torch.from_numpy(generator.random(length) < 0.5)
    truth[0] = True
    return Tokenised(0, torch.arange(length), torch.zeros(length, 2).int(), sentences, 0, truth)


def _looped(found: list[Selected], overlap: float) -> float:
    """The same with sets of words: every selected sentence, every stretch of marked words, every pair of them."""
    precisions, recalls = [], []
    for each in found:
        if each.row.truth is None:
            continue
        chosen = [
            {place for place, of in enumerate(each.row.sentences.tolist()) if of == sentence and each.kept[place]}
            for sentence in set(each.row.sentences.tolist())
        ]
        chosen = [places for places in chosen if places]
        marked = [
            {place for place, _ in stretch}
            for there, stretch in itertools.groupby(enumerate(each.row.truth.tolist()), key=lambda pair: pair[1])
            if there
        ]
        hits = sum(any(len(one & two) / len(one | two) >= overlap for two in marked) for one in chosen)
        precisions.append(hits / len(chosen))
        recalls.append(hits / len(marked))
    precision, recall = np.mean(precisions), np.mean(recalls)
    return float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0


def test_all_recipes_are_asked_for() -> None:
    assert all(Cell("planted:phrase", "bilstm", name).asked("cpu").recipe == name for name in RECIPES)

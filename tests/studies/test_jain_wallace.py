"""The tables of Jain and Wallace: ours, the paper's and the released figures stand in the right places."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from assay.records import Finding
from studies.jain_wallace.__main__ import lines as rows_of
from studies.jain_wallace.published import CORPORA, ENCODERS, PAIRS, PUBLISHED, RELEASED, same
from studies.jain_wallace_grid.beside import below, lines, means, sentences

GRID = ("bilstm-additive", "bilstm-dot")


def row(corpus: str, model: str, seed: int, subject: str, measure: str, mean: float) -> dict[str, object]:
    names = {"corpus": corpus, "model": model, "seed": seed, "audit": "agreement", "subject": subject}
    return names | {"measure": measure, "mean": mean}


def test_every_model_of_the_grid_has_released_figures_and_those_of_table_2_have_published_ones():
    corpora = dict.fromkeys(map(same, CORPORA))
    encoders = ("lstm", "cnn", "average")
    assert set(RELEASED) == {(name, each, how) for name in corpora for each in encoders for how in ("additive", "dot")}
    assert {name for name, _, _ in PUBLISHED} == set(corpora)
    every = [figure for figures in (*PUBLISHED.values(), *RELEASED.values()) for figure in figures if figure]
    assert all(-1 <= mean <= 1 and 0 < std < 0.3 and 0 <= share <= 1 for mean, std, share in every)


def test_released_dot_product_attention_agrees_less_on_four_of_eight_corpora_with_a_bilstm():
    lower, known = below({}, list(CORPORA), "lstm")[2:]
    assert (lower, len(known)) == (["sst", "imdb", "agnews", "snli"], 8)


def test_a_cell_of_the_grid_is_the_mean_over_seeds_with_the_share_of_significant_texts():
    taus = {"bilstm-additive": (0.1, 0.3), "bilstm-dot": (0.4, 0.6)}
    rows = [row("sst", name, seed, PAIRS[0], "tau", taus[name][seed]) for name in GRID for seed in (0, 1)]
    rows += [row("sst", "bilstm-additive", seed, PAIRS[0], "significant", 0.5 + 0.1 * seed) for seed in (0, 1)]
    rows += [row("sst", "bilstm-dot", 0, PAIRS[0], "tau", 9.0) | {"audit": "another"}]
    found = means(rows)
    table = list(lines(found, ["sst"]))
    assert len(table) == 2 + 6
    assert table[2].startswith(
        "| SST | BiLSTM, additive | 0.20 (0.55) | 0.40 (0.59) / 0.38 (0.58) | 0.35 (0.49) | – | 0.34 (0.47)"
    )
    assert table[3].startswith("| SST | BiLSTM, dot | 0.50 | – | 0.07 (0.09) | – | – | 0.06 (0.07) |")
    told = list(sentences(found, ["sst"]))
    assert (
        "agrees less with gradients than additive attention does on 0 of 1 corpora here (none), and on 1 of 1"
        in told[0]
    )
    assert "on 0 of 0 corpora here" in told[1]


@pytest.mark.parametrize("name", ["newsgroups", "newsgroups-bodies"])
def test_a_line_of_table_2_has_ours_by_class_the_papers_and_the_released(name):
    classes = ["baseball", "hockey"]
    findings = [
        Finding("agreement", pair, "tau", group, 0.2, 0.1, 0.3, 0.15, 10, significant=0.4)
        for pair in PAIRS
        for group in (*classes, "all")
    ]
    model = {"test": {"accuracy": 0.93}}
    result = {"corpus": {"classes": classes}, "model": model, "findings": [asdict(each) for each in findings]}
    first, *others = rows_of(name, "lstm", result)
    assert len(others) == 2
    assert first == (
        f"| {CORPORA[name]} | {ENCODERS['lstm']} | 0.930 (0.94) | attention ~ gradient | "
        "0.20 ± 0.15 (0.40) / 0.20 ± 0.15 (0.40) | 0.08 ± 0.15 (0.31) / 0.13 ± 0.16 (0.48) | "
        "0.200 [0.100, 0.300] | 0.40 | 0.13 ± 0.21 (0.48) | 10 |"
    )

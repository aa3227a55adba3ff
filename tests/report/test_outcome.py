"""Terminal, `print`, page, Markdown, JSON and notebook say the same of a run: headline, counts, caveats, results."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from assay.audits import FOUR_TESTS
from assay.cli.app import show_report
from assay.records import Record
from assay.report import audit, markdown, notebook
from assay.report.outcome import outcome
from assay.run.reporting import Report, Result
from tests.report.synthetic import changed, failing, remade, synthetic_record, worded

UNREAD = {"more than 512 pieces": 11, "no words": 1}


def _known(record: Record, part: str, **values: Any) -> Record:
    """The record with other values in one part of its summary."""
    return remade(record, summary=record.summary | {part: record.summary[part] | values})


def _unpooled() -> Record:
    record = worded(synthetic_record(count=40), "transformer", "words")
    about = record.summary["audits"]["adversary"] | {"applies": False, "why": "No attention pools the words."}
    return _known(record, "audits", adversary=about)


def _beyond_the_seeds() -> Record:
    record = synthetic_record(count=60, audits=FOUR_TESTS)
    return changed(record, "frozen_uniform", "learnt", "right_gain", mean=0.1, low=0.05, high=0.15)


def _tested(**scores: float) -> Callable[[], Record]:
    return lambda: _known(synthetic_record(count=40, audits=("sparsity",)), "model", test=scores)


def _of(**asked: Any) -> Callable[[], Record]:
    return lambda: synthetic_record(**{"count": 40} | asked)


RUNS: dict[str, tuple[Callable[[], Record], tuple[str, ...]]] = {
    "usual": (_of(), ("You may show leave_one_out", "do not show attention", "Audits: 2 warn, 2 fail of 4.")),
    "one explainer": (_of(explainers=("gradient",), audits=("agreement",)), ("Explainers: 1 not graded of 1.",)),
    "deception": (_of(audits=("deception",)), ("No heatmap was graded: At the same accuracy", "Audits: 1 fail of 1.")),
    "sparsity": (
        _of(audits=("sparsity",)),
        ("graded: As attention gets sparser", "1 measured only of 1."),
    ),
    "word_level": (_of(audits=("word_level",)), ("No heatmap was graded: The task score is",)),
    "four_tests": (_beyond_the_seeds, ("Attention does better than uniform weights", " of 4.")),
    "transformer without pooling": (_unpooled, ("1 not applicable of 4.",)),
    "few texts": (_of(count=12), ("too few texts: 12 texts are usable, and a grade takes 30.",)),
    "texts left out": (
        lambda: _known(synthetic_record(count=4), "corpus", unread=UNREAD),
        ("12 of 16 texts were left out (more than 512 pieces: 11, no words: 1).", "Only 4 texts stand"),
    ),
    "unlike the bank": (
        lambda: worded(synthetic_record(count=40)),
        ("This model is unlike those of the bank (", "it is another kind of network (hierarchical)"),
    ),
    "no explainer passes": (
        lambda: failing(synthetic_record(count=40)),
        ("None of these 5 explainers may be shown", "the least bad is"),
    ),
    "explainers left out": (_of(), ("3 explainers were left out: rollout, flow (the model has no stack",)),
    "near chance by accuracy and AUC": (
        _tested(accuracy=0.5, auc=0.6),
        ("hardly better than chance (accuracy 0.500",),
    ),
    "near chance by AUC alone": (_tested(accuracy=0.9, auc=0.52), ("is hardly better than chance (accuracy 0.900",)),
    "near chance by accuracy alone": (_tested(accuracy=0.5, auc=0.9), ("hardly more often right than always naming",)),
    "planted truth": (_of(audits=("agreement", "truth")), ("the words that are known to decide (AUPRC",)),
    "plausibility": (_of(audits=("plausibility",)), ("No heatmap was graded: Best is leave_one_out with an AUPRC of",)),
}


EVERYWHERE = ("usual", "four_tests", "texts left out", "no explainer passes", "explainers left out", "planted truth")
"""The runs that are shown in every form also where time is short."""


@pytest.fixture(
    scope="module", params=[name if name in EVERYWHERE else pytest.param(name, marks=pytest.mark.slow) for name in RUNS]
)
def run(request: pytest.FixtureRequest) -> tuple[Record, tuple[str, ...]]:
    make, wanted = RUNS[request.param]
    return make(), wanted


def _plain(text: str) -> str:
    """Words with one space between them, none before or after a colon, and no markup."""
    text = html.unescape(re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL))
    text = re.sub(r"\\(?=[^\w\s])|\*\*", "", text)  # Markdown's
    return re.sub(r"\s*:\s*", ":", " ".join(text.split()))


def _terminal(record: Record) -> str:
    console = Console(file=io.StringIO(), width=100)
    show_report(Report(Path("report.html"), record), console)
    return console.file.getvalue()  # type: ignore[attr-defined]


SHOWN: dict[str, Callable[[Record], str]] = {
    "terminal": _terminal,
    "print": lambda record: str(Result(record)),
    "page": audit.render,
    "markdown": lambda record: markdown.render(audit.document(record, "md")),
    "notebook": notebook.audit,
}


def test_every_form_says_the_same(run: tuple[Record, tuple[str, ...]]) -> None:
    record, wanted = run
    found = outcome(record)
    every = _plain(" ".join((found.headline, found.tally, *found.caveats)))
    for words in wanted:
        assert _plain(words) in every
    for name, show in SHOWN.items():
        shown = _plain(show(record))
        for words in (found.headline, found.tally, *found.caveats):
            assert _plain(words) in shown, (name, words)
        if name != "notebook":  # where an exclamation mark stands for the word
            assert shown.count("Caveat.") == len(found.caveats), name
    told = audit.data(record)["verdict"]
    assert (told["headline"], told["tally"], tuple(told["caveats"])) == (found.headline, found.tally, found.caveats)


def test_the_result_of_every_audit_is_shown_without_opening_a_page(run: tuple[Record, tuple[str, ...]]) -> None:
    record, _ = run
    rows = " ".join(_terminal(record).split())
    for card in outcome(record).cards:
        assert f"{card.grade} {card.name} " in rows
        assert card.brief[:40] in rows


def test_counts_add_up(run: tuple[Record, tuple[str, ...]]) -> None:
    record, _ = run
    found = outcome(record)
    sums = dict(re.findall(r"(Explainers|Audits): ([^.]*)\.", found.tally))
    for noun, every in (("Explainers", record.summary["explainers"]), ("Audits", record.summary["audits"])):
        *parts, total = map(int, re.findall(r"\d+", sums[noun]))
        assert sum(parts) == total == len(every)
    grades = [verdict.grade for verdict in found.verdicts]
    for word in ("pass", "warn", "fail"):
        told = re.search(rf"(\d+) {word}", sums["Explainers"])
        assert int(told[1] if told else 0) == grades.count(word)


def test_tables_without_a_number_are_not_shown() -> None:
    record = synthetic_record(count=30, audits=("deception",))
    assert "not graded" in str(Result(record))
    assert "verdict" not in str(Result(record))
    assert "side verdicts" not in notebook.audit(record)
    assert "side verdicts" in notebook.audit(synthetic_record(count=30))

"""The forms that a comparison can be written in, each by a function of the comparison, and how to know one again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assay import __version__
from assay.report.markdown import table, text
from assay.report.plain import finite
from assay.report.runs import words
from assay.report.runs.differences import Comparison, Difference
from assay.report.runs.page import SHOWN, page
from assay.report.runs.provenance import provenance
from assay.report.runs.tables import COLUMNS, Matrix, difference_row, matrix, run_rows, spreads

KIND = "assay comparison"
SIGNS = ('<meta name="generator" content="assay ', f"<!-- {KIND} -->", f'"kind": "{KIND}"')
"""By one of these near its beginning a file is known as a comparison of ours."""

BEGINNING = 2000


def markdown(comparison: Comparison) -> str:
    """The comparison as GitHub-flavoured Markdown; names from anywhere show as text."""
    names, facts = list(comparison.records), provenance(comparison.records)
    runs = [
        [each.name, each.grade, each.model, each.corpus, each.seed, each.texts, each.accuracy]
        for each in run_rows(comparison)
    ]
    heads = ["run", "grade", "model", "corpus", "seed", "texts", "accuracy"]
    shown = comparison.headline
    blocks = [
        f"<!-- {KIND} -->\n# {len(names)} runs side by side",
        f"**{_told(words.headline(comparison))}**",
        "\n".join(f"- {_told(each)}" for each in words.bullets(comparison)),
        *(f"**Caveat.** {_told(each)}" for each in words.caveats(comparison)),
        "## The runs",
        _table(heads, runs, 4),
        *(
            [f"## Explainers in each run, by {text(shown.title)}", _matrix(matrix(comparison, shown), names)]
            if shown
            else []
        ),
        *_gaps(comparison.exceeding),
        *_seeds(comparison),
        "## What differs in how the runs were made",
        _table(["fact", *names], [[name, *texts] for name, texts in facts.different], 9)
        if facts.different
        else "Nothing.",
        "## How to read this",
        "\n".join(f"- {text(each)}" for each in (*words.RULES, *words.LIMITS)),
    ]
    return "\n\n".join(blocks) + "\n"


def data(comparison: Comparison) -> str:
    """The comparison as one JSON document with every number."""
    told = {
        "kind": KIND,
        "assay": __version__,
        "headline": words.plain(words.headline(comparison)),
        "sentences": list(map(words.plain, words.bullets(comparison))),
        "caveats": list(map(words.plain, words.caveats(comparison))),
        "runs": [asdict(each) for each in run_rows(comparison)],
        "groups": [
            {"runs": list(group), "spread": [asdict(each) for each in spreads(comparison, group)]}
            for group in comparison.groups
        ],
        "values": [
            {"measure": quantity.measure, "audit": quantity.audit, "explainer": subject, "run": run} | asdict(value)
            for (quantity, subject, run), value in comparison.values.items()
        ],
        "differences": list(map(_difference, comparison.differences)),
        "not_compared": [{"what": what, "why": why} for what, why in comparison.not_compared],
        "different": {name: list(texts) for name, texts in provenance(comparison.records).different},
        "rules": [*words.RULES, *words.LIMITS],
    }
    return json.dumps(finite(told), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


FORMS: dict[str, Callable[[Comparison], str]] = {"html": page, "md": markdown, "json": data}


def ours(path: Path) -> bool:
    """Whether a file is a comparison that we wrote, and may be written again."""
    with path.open("rb") as file:
        beginning = file.read(BEGINNING).decode("utf-8", "replace")
    if SIGNS[0] in beginning:
        return ", comparison" in beginning.partition(SIGNS[0])[2].partition(">")[0]
    return any(sign in beginning for sign in SIGNS[1:])


def _told(sentence: str) -> str:
    return text(words.plain(sentence))


def _table(columns: list[str], rows: list[list[str]], first_number: int) -> str:
    return table(list(map(text, columns)), [list(map(text, row)) for row in rows], first_number)


def _matrix(made: Matrix, names: list[str]) -> str:
    rows = []
    for subject, cells in made.rows:
        told = [subject]
        for cell in cells:
            parts = ["–"] if cell is None else [cell.mean, f"({cell.interval})", cell.grade or ""]
            told.append(
                " ".join([*parts, *(f"{mark} {said}" for mark, said in (cell.remarks if cell else ()))]).strip()
            )
        rows.append(told)
    return _table(["explainer", *names], rows, 9 + len(names))


def _gaps(found: tuple[Difference, ...]) -> list[str]:
    if not found:
        return []
    rows = [list(difference_row(each)[2:]) for each in found[:SHOWN]]
    return ["## What exceeds noise", _table(list(COLUMNS[2:]), rows, 4)]


def _seeds(comparison: Comparison) -> list[str]:
    if not comparison.groups:
        return []
    blocks = ["## Runs that differ only by their seed"]
    for group in comparison.groups:
        rows = [[each.subject, each.mean, each.spread, each.least, each.most] for each in spreads(comparison, group)]
        blocks += [
            f"{text(', '.join(group))}:",
            _table(["explainer", "mean", "spread over seeds", "least", "most"], rows, 1),
        ]
    return blocks


def _difference(each: Difference) -> dict[str, Any]:
    return {
        "measure": each.quantity.measure,
        "audit": each.quantity.audit,
        "explainer": each.subject,
        "first": list(each.first.runs),
        "second": list(each.second.runs),
        "difference": each.contrast.gap,
        "low": each.contrast.low,
        "high": each.contrast.high,
        "p": each.contrast.p,
        "p_corrected": each.adjusted,
        "sizes": list(each.contrast.sizes),
        "shared_texts": each.shared,
        "noise": each.noise,
        "noise_meaning": words.NOISE[each.noise],
        "state": each.state,
    }

"""The report as GitHub-flavoured Markdown; text from anywhere shows as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from assay.files import write_text
from assay.lookup import NOT_APPLICABLE
from assay.records import Record
from assay.report.forms.document import document
from assay.report.forms.samples import strongest
from assay.report.markdown import code, table, text
from assay.report.sections import CARD_MARKS
from assay.report.tables import TIE
from assay.writing import count, figures


def render(record: Record) -> str:
    """The report as the text of one file; the same record gives the same text."""
    told = document(record)
    blocks = [
        f"# {text(told['title'])}",
        *_verdict(told["verdict"]),
        *_board(told["leaderboard"]),
        *_audited(told),
        *_four_tests(told["four_tests"]),
        *(["## Audits", text(told["grades"])] if told["audits"] else []),
        *(block for section in told["audits"] for block in _section(section)),
        *_examples(told),
        *_provenance(told),
        "## Glossary",
        *(f"**{text(name)}**: {text(meaning)}" for name, meaning in told["glossary"].items()),
        f"---\n\nMade by {text(told['made_by'])}.",
    ]
    return "\n\n".join(blocks) + "\n"


def write(record: Record, path: Path) -> None:
    """Writes the report, whole or not at all."""
    write_text(path, render(record))


def _gridded(grid: dict[str, Any]) -> str:
    title = [f"*{text(grid['title'])}*"] if grid["title"] else []
    cells = [list(map(text, row)) for row in grid["rows"]]
    return "\n\n".join([*title, table(list(map(text, grid["columns"])), cells, grid["first_number"])])


def _badge(grade: str) -> str:
    return f"**{CARD_MARKS.get(grade, '')} {text(grade)}**"


def _verdict(verdict: dict[str, Any]) -> list[str]:
    grid, names = verdict["table"], [each["name"] for each in verdict["explainers"]]
    rows = [[text(row[0]), _badge(row[1]), *map(text, row[2:])] for row in grid["rows"]]
    words = [" ".join([each["sentence"], *each["more"]]) for each in verdict["explainers"]]
    rule = verdict["yardstick"]
    return [
        "## Verdict",
        f"{_badge(verdict['grade'])} **{text(verdict['headline'])}**",
        *([text(verdict["tally"])] if verdict["tally"] else []),
        *(f"**Caveat.** {text(caveat)}" for caveat in verdict["caveats"]),
        *([table(list(map(text, grid["columns"])), rows, grid["first_number"])] if verdict["graded"] else []),
        _pairs(zip(names, words, strict=True)),
        f"{text(rule['how'])} {text(rule['reason'])}",
    ]


def _board(board: dict[str, Any] | None) -> list[str]:
    if board is None:
        return []
    grid = board["table"]
    rows = [
        [f"**{text(cell)}**" if place in best else text(cell) for place, cell in enumerate(row)]
        for row, best in zip(grid["rows"], grid["best"], strict=True)
    ]
    arrows = {True: "↑", False: "↓"}
    meanings = [
        f"- **{text(m['title'])} {arrows[m['more_is_better']]}**: {text(m['meaning'])}" for m in board["measures"]
    ]
    return [
        "## Leaderboard",
        f"Rows stand {text(board['order'])}. **Bold** is the best of a column; {TIE} is not clearly worse: it "
        "belongs to the 95 % model confidence set over the same texts. ↑ more is better, ↓ less is better.",
        table(list(map(text, grid["columns"])), rows),
        *map(text, board["notes"]),
        "\n".join(meanings),
    ]


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"- **{text(name)}**: {text(said)}" for name, said in pairs)


def _audited(told: dict[str, Any]) -> list[str]:
    left = ["### Explainers that cannot serve this model", _pairs(told["left_out"])] if told["left_out"] else []
    own = told["own"]
    said = ["### What the explainers say of themselves", _gridded(own)] if own["rows"] else []
    return ["## What was audited", _pairs(told["audited"]), *left, *said]


def _four_tests(block: dict[str, Any] | None) -> list[str]:
    if block is None:
        return []
    rows = [[text(test[key]) for key in ("name", "question", "found", "says")] for test in block["tests"]]
    return [
        "## Four tests of attention, together",
        f"**{text(block['closing'])}**",
        table(["test", "question", "found", "what it says"], rows, first_number=4),
        f"*How to read this.* {text(block['reading'])}",
        f"After Wiegreffe and Pinter (2019). {text(block['limits'])}",
    ]


def _section(section: dict[str, Any]) -> list[str]:
    blocks = [f"### {text(section['title'])}"]
    if section["question"]:
        blocks.append(f"*{text(section['question'])}*")
    blocks.append(f"{_badge(section['grade'])} {text(section['why'])}")
    if section["grade"] != NOT_APPLICABLE:
        blocks += [f"**{text(section['answer'])}**"] if section["answer"] else []
        blocks += [text(section["remark"])] if section["remark"] else []
        blocks += [f"*How to read this.* {text(section['reading'])}"] if section["reading"] else []
        blocks += [f"*The grade.* {text(section['rule'])}"] if section["rule"] else []
        blocks += [_gridded(grid) for grid in section["tables"]]
        blocks += _folded(section["numbers"])
    return blocks + _source(section)


def _source(section: dict[str, Any]) -> list[str]:
    paper = f"After {text(section['paper'])}. " if section["paper"] else ""
    kind = f"The numbers are {text(section['kind_meaning'])}; means over texts have 95 % intervals."
    told = f"{paper}{kind if section['kind'] else ''}".strip()
    return [told] if told else []


def _folded(grid: dict[str, Any]) -> list[str]:
    if not grid["rows"]:
        return []
    head = f"<details><summary>All numbers ({count(len(grid['rows']))} rows)</summary>"
    return [head, _gridded(grid), "</details>"]


def _examples(told: dict[str, Any]) -> list[str]:
    if not told["examples"]:
        return []
    blocks = [
        "## Examples",
        "For each text the words with the largest scores, the largest first; a score below 0 speaks against the "
        f"predicted class. {' '.join(map(text, told['example_notes']))}".strip(),
    ]
    for group in told["examples"]:
        blocks += [f"### {text(group['title'])}", f"Rule: {text(group['rule'])}."]
        blocks += [block for sample in group["examples"] for block in _sample(sample)]
    return blocks


def _trusted(row: dict[str, Any]) -> str:
    return f"{row['name']} ({row['trust']})" if row.get("trust") else str(row["name"])


def _sample(sample: dict[str, Any]) -> list[str]:
    cuts = [f"… {count(cut)} more tokens …" if cut else "" for cut in (sample["before"], sample["after"])]
    shown = " ".join(filter(None, (cuts[0], " ".join(sample["words"]), cuts[1])))
    outcome = "right" if sample["right"] else f"labelled {text(sample['label'])}"
    rows = [[text(_trusted(row)), _words(sample["words"], row)] for row in sample["rows"]]
    return [
        f"> {text(shown)}",
        *([f"Question or hypothesis: {text(sample['query'])}"] if sample["query"] else []),
        f"Predicted **{text(sample['predicted'])}** {sample['probability']:.2f}, {outcome} (example "
        f"{sample['example']}).",
        table(["scored by", "strongest words"], rows, first_number=2),
    ]


def _words(words: Sequence[str], row: dict[str, Any]) -> str:
    if row["kind"] == "flags":
        return ", ".join(f"“{text(word)}”" for word, flag in zip(words, row["scores"], strict=True) if flag) or "none"
    return ", ".join(f"“{text(word)}” {figures(score)}" for word, score in strongest(words, row["scores"])) or "none"


def _provenance(told: dict[str, Any]) -> list[str]:
    origin = told["provenance"]
    plan = [(key, value) for key, value in origin["plan"].items() if value is not None]
    return [
        "## Provenance",
        "This command made the audit; all numbers stand in `summary.json`, `instances.parquet` and `examples.parquet`, "
        "and `assay figures` draws the figures.",
        code(origin["command"] or "not known"),
        _pairs(origin["facts"]),
        "<details><summary>The whole plan</summary>",
        "\n".join(f"- **{text(key)}**: {code(value)}" for key, value in plan) or "not known",
        "</details>",
    ]

"""A document as GitHub-flavoured Markdown; text from anywhere shows as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.document import (
    MARKS,
    Block,
    Bullets,
    Card,
    Cell,
    Code,
    Document,
    Example,
    Figure,
    Fold,
    Group,
    Heading,
    Headline,
    Pairs,
    Passage,
    Phrases,
    Prose,
    Section,
    Span,
    Table,
    Words,
    parts,
    plain,
)
from assay.files import write_text
from assay.report.heatmaps import sampled, spans, strongest
from assay.report.trees import outline
from assay.writing import count, encodable, figures, line

ACTING = re.compile(r"[\\`*\[\]<|$]|~(?=\S)|(?<=\S)~|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")
"""What Markdown may take for markup; an underscore only at the edge of a word, so that names stay readable."""

LINKS = re.compile(r"(?<=:)/(?=/)|(?<=www)\.", re.IGNORECASE)
"""Where a bare address would become a link."""

OPENING = re.compile(r"^(?:\d{1,9}(?=[.)](?:\s|$))|(?=[-+=#>]))")
"""What would begin a list, a heading, a quotation or a rule at the start of a line."""

ROLES = {
    "caveat": "**Caveat.** {}",
    "reading": "*How to read this.* {}",
    "answer": "**{}**",
    "about": "*{}*",
    "quote": "> {}",
    "legend heat": "For each text the words with the largest scores, the largest first; a score below 0 speaks against "
    "the predicted class.",
}

STRONG = ("strong", "called", "selected", "both")


def render(document: Document) -> str:
    """The document as the text of one file; the same document gives the same text."""
    mark = [f"<!-- assay {document.kind} -->"] if document.kind else []
    made = f"---\n\nMade by assay {text(document.made_by)}."
    blocks = [*mark, f"# {text(document.title)}", *written(document.sections), made]
    return encodable("\n\n".join(blocks) + "\n")


def write(document: Document, path: Path) -> None:
    """Writes the document, whole or not at all."""
    write_text(path, render(document))


def written(blocks: Iterable[Block], level: int = 2) -> Iterator[str]:
    """Each block as a paragraph, or several."""
    for block in blocks:
        yield from _block(block, level)


def text(value: object) -> str:
    """Any text on one line so that it shows as it is: no markup, no link, no end of a cell, nothing hidden."""
    plain = ACTING.sub(lambda found: f"\\{found[0]}", line(str(value)).strip())
    plain = LINKS.sub(lambda found: f"\\{found[0]}", plain)
    return OPENING.sub(lambda found: f"{found[0]}\\", plain)


def code(value: object) -> str:
    """Any text on one line as code, between more backticks than it holds."""
    plain = line(str(value)).strip()
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", plain)), default=0))
    pad = " " if "`" in plain or not plain else ""
    return f"{fence}{pad}{plain}{pad}{fence}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], first_number: int = 1) -> str:
    """Cells that are Markdown already, as one table; columns from `first_number` on stand at the right."""
    rule = ["---" if place < first_number else "--:" for place in range(len(columns))]
    return _lines(columns, rule, rows)


def inline(words: Words) -> str:
    """A sentence with its parts set apart."""
    return "".join(map(_part, parts(words))).strip()


def badge(grade: str) -> str:
    return f"**{MARKS.get(grade, '·')} {text(grade)}**"


def _part(part: str | Span) -> str:
    found, kind = (part, "") if isinstance(part, str) else (part.text, part.kind)
    inner = found.strip()
    if not inner or kind == "heard":
        return found[:1] if not inner else ""
    before, _, after = found.partition(inner)
    made = code(inner) if kind == "code" else f"**{text(inner)}**" if kind in STRONG else text(inner)
    return f"{before[:1]}{made}{after[:1]}"


def _block(block: Block, level: int) -> Iterator[str]:
    if isinstance(block, Section):
        yield from [f"{'#' * level} {inline(block.title)}"] if block.title else []
        yield from written(block.blocks, level)
    elif isinstance(block, Headline):
        yield from [inline(block.kicker)] if block.kicker else []
        grade = f"{badge(block.grade)} " if block.grade else ""
        yield f"{grade}**{' '.join(filter(None, (inline(block.lead), inline(block.because))))}**"
    elif isinstance(block, Heading):
        yield f"{'#' * block.level} {inline(block.text)}"
    elif isinstance(block, Prose):
        yield ROLES.get(block.role, "{}").format(inline(block.text))
    elif isinstance(block, Bullets):
        yield "\n".join(f"{'1.' if block.ordered else '-'} {inline(each)}" for each in block.items)
    elif isinstance(block, Pairs):
        yield "\n".join(f"- **{text(plain(name))}**: {inline(said)}" for name, said in block.rows)
    elif isinstance(block, Code):
        yield code(block.text)
    elif isinstance(block, Table):
        yield from [f"*{inline(block.caption)}*"] if block.caption else []
        table, below = block.parted
        yield _table(table.written)
        yield from written([below] if below else [])
    elif isinstance(block, Figure):
        yield from (f"*{inline(words)}*" for words in (block.title, block.caption) if words)
        yield from written(block.blocks, level)
    elif isinstance(block, Passage):
        yield f"> {inline(spans(block))}"
    elif isinstance(block, Phrases):
        yield "\n".join(f"    {line(each)}" for each in outline(block.tree, block.words))
    elif isinstance(block, Example):
        yield from _example(sampled(block))
    elif isinstance(block, Card):
        yield f"{'#' * (level + 1)} {inline(block.title)}"
        yield badge(block.grade)
        yield from written(block.blocks, level + 1)
    elif isinstance(block, Fold):
        yield f"<details><summary>{text(plain(block.summary))}</summary>"
        yield from written(block.blocks, level)
        yield "</details>"
    elif isinstance(block, Group) and block.role != "key":  # what signs of drawings mean
        yield from written(block.blocks, level)


def _example(found: Mapping[str, Any]) -> Iterator[str]:
    """The text, the decision, and the strongest words of each line."""
    cuts = [f"… {count(cut)} more tokens …" if cut else "" for cut in (found["before"], found["after"])]
    yield f"> {text(' '.join(filter(None, (cuts[0], *found['words'], cuts[1]))))}"
    if found["query"]:
        yield f"Question or hypothesis: {text(found['query'])}"
    outcome = "right" if found["right"] else f"labelled {text(found['label'])}"
    sure = f"{found['probability']:.2f}"
    yield f"Predicted **{text(found['predicted'])}** {sure}, {outcome} (example {found['example']})."
    names = [f"{row['name']} ({row['remark']})" if row["remark"] else row["name"] for row in found["rows"]]
    words = [_words(found["words"], row) for row in found["rows"]]
    yield table(["scored by", "strongest words"], zip(map(text, names), words, strict=True), first_number=2)


def _words(words: Sequence[str], row: Mapping[str, Any]) -> str:
    pairs = strongest(words, row["scores"], len(words) if row["kind"] == "flags" else 5)
    if row["kind"] == "flags":
        return ", ".join(f"“{text(word)}”" for word, _ in pairs) or "none"
    return ", ".join(f"“{text(word)}” {figures(score)}" for word, score in pairs) or "none"


def _table(block: Table) -> str:
    rule = ["--:" if column.number else "---" for column in block.columns]
    rows = [list(map(_cell, row.cells)) for row in block.rows]
    return _lines([text(plain(column.head)) for column in block.columns], rule, rows)


def _lines(heads: Sequence[str], rule: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows))


def _cell(cell: Words | Cell) -> str:
    if not isinstance(cell, Cell):
        return inline(cell)
    grade = badge(cell.grade) if cell.grade else ""
    notes = f"({'; '.join(map(inline, cell.notes))})" if cell.notes else ""
    return " ".join(filter(None, (inline(cell.text), grade, notes, inline(cell.mark))))

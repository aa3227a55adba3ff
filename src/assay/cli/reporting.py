"""Reports, comparisons and figures of finished audits on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.errors import AssayError
from assay.progress import bar
from assay.records import Record
from assay.run.reporting import Report, drawable, opened, report


def reported(folders: Sequence[Path], form: str | None, out: Path | None, console: Console) -> None:
    """Writes the report of one audit, or compares several, and shows the verdict."""
    tell(report(*folders, format=form, out=out), console)


def drawn(folder: Path, form: str, out: Path | None, console: Console) -> None:
    """Writes every figure that the audit has, each whole, and lists them."""
    record, place = opened(folder), out or folder / "figures"
    if place.exists() and not place.is_dir():
        raise AssayError(f"{place} is a file; name a folder for the figures.")

    from assay.report.figures import figures, save
    from assay.report.sections import captions

    with drawable(folder):
        found = figures(record)
    if not found:
        raise AssayError(f"{folder} has no figures: none of its audits gave a number that is drawn.")
    place.mkdir(parents=True, exist_ok=True)
    with bar() as progress:
        for name, drawing in progress.track(found.items(), description="drawing"):
            save(drawing, place / f"{name}.{form}")
    told = captions(record)
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name in found:
        table.add_row(Text(f"{name}.{form}"), Text(told.get(name, "The verdict on each explainer.")))
    console.print(table)
    console.print(f"Figures: {place} ({len(found)})", soft_wrap=True, markup=False, highlight=False)


def shown(record: Record, folder: Path, console: Console) -> None:
    """Writes the page of an audit that was just made, and shows its verdict."""
    tell(report(record, out=folder / "report.html"), console)
    if (line := spent(record)) is not None:
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def spent(record: Record) -> str | None:
    """How much of the time of an audit the verdict took, where both are known."""
    whole, part = record.summary.get("seconds"), record.summary["audits"].get("deciding", {}).get("seconds")
    return f"The verdict took {part:.1f} of {whole:.1f} s ({part / whole:.0%})." if whole and part else None


def tell(made: Report, console: Console) -> None:
    """Prints the outcome, and where the report lies."""
    console.print()
    for line in made.lines(console.width):
        console.print(line, highlight=False, markup=False)
    kind = "Report" if made.record is not None else "Comparison"
    console.print(f"{kind}: {made.path}", soft_wrap=True, markup=False, highlight=False)

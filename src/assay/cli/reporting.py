"""Reports, comparisons and figures of finished audits, written and told on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.errors import AssayError, reason
from assay.progress import bar
from assay.records import EXAMPLES, INSTANCES, SUMMARY, Record

HOME = Path("runs")
"""Where audits lie that were made without --out."""

OWN = (SUMMARY, INSTANCES, EXAMPLES, "plan.json")
"""What an audit needs to be read and to go on; no report takes their place."""


def chosen_form(form: str | None, out: Path | None) -> str:
    """What to write: the form that was asked for, else the one that the name of the file ends in, else a page."""
    from assay.report.forms import FORMS

    ending = out.suffix.lower().lstrip(".") if out is not None else ""
    told = ending if ending in FORMS else None
    if form and told and form != told:
        raise AssayError(f"{out} would end in .{told} and hold {form}; leave out --format, or change the name.")
    return form or told or "html"


def reported(folders: Sequence[Path], form: str, out: Path | None, console: Console) -> None:
    """Writes the report of one audit, and shows its verdict."""
    from assay.report.forms import FORMS

    if not folders:
        raise AssayError(f"Name the folder of a finished audit, such as: assay report {_some()}")
    record = opened(folders[0])
    path = free_place(out or folders[0] / f"report.{form}")
    if path.exists() and path.suffix.lower() != f".{form}":  # texts or a plan, by a slip: no report is called so
        raise AssayError(f"{path} is there already, and its name is not that of a report; name another with --out.")
    with _drawable(folders[0]):
        FORMS[form](record, path)
        tell(record, path, console)


def compared(folders: Sequence[Path], form: str, out: Path | None, console: Console) -> None:
    """Writes several audits side by side, and shows which differences exceed noise."""
    from assay.report.compare import brief, document, ours
    from assay.report.console import shown
    from assay.report.differences import differences
    from assay.report.save import save

    path = free_place(out or Path(f"comparison.{form}"))
    if path.exists() and not ours(path):
        raise AssayError(f"{path} is there already and is no comparison of assay; name another file with --out.")
    records = {name: opened(folder) for name, folder in run_names(folders).items()}
    with _drawable(*folders):
        comparison = differences(records)
        save(document(comparison), path, form)
    console.print()
    console.print(*shown(brief(comparison, console.width)), sep="\n", highlight=False)
    console.print(f"Comparison: {path}", soft_wrap=True, markup=False, highlight=False)


def run_names(folders: Sequence[Path]) -> dict[str, Path]:
    """A name for each folder: its last part, with as many parts before it as tell it from the others."""
    places = [folder.resolve() for folder in folders]
    for place, folder in zip(places, folders, strict=True):
        if places.count(place) > 1:
            raise AssayError(f"{folder} is named twice; name each audit once.")
    depths = range(1, max(len(place.parts) for place in places) + 1)
    names = [[str(Path(*place.parts[-depth:])) for depth in depths] for place in places]
    told = [next(each for each in own if sum(each in other for other in names) == 1) for own in names]
    return dict(zip(told, folders, strict=True))


def drawn(folder: Path, form: str, out: Path | None, console: Console) -> None:
    """Writes every figure that the audit has, each whole, and lists them."""
    record, place = opened(folder), out or folder / "figures"
    if place.exists() and not place.is_dir():
        raise AssayError(f"{place} is a file; name a folder for the figures.")

    from assay.report.figures import figures, save
    from assay.report.sections import captions

    with _drawable(folder):
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
    from assay.report.page import write

    path = folder / "report.html"
    write(record, path)
    tell(record, path, console)
    if (line := spent(record)) is not None:
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def spent(record: Record) -> str | None:
    """How much of the time of an audit the verdict took, where both are known."""
    whole, part = record.summary.get("seconds"), record.summary["audits"].get("deciding", {}).get("seconds")
    return f"The verdict took {part:.1f} of {whole:.1f} s ({part / whole:.0%})." if whole and part else None


def tell(record: Record, path: Path, console: Console) -> None:
    """Prints the outcome, and where the report lies."""
    from assay.report.terminal import told

    console.print("", *told(record, console.width), sep="\n", highlight=False, markup=False)
    console.print(f"Report: {path}", soft_wrap=True, markup=False)


def opened(folder: Path) -> Record:
    """The finished audit in a folder; what is missing is told in a sentence."""
    if not folder.exists():
        raise AssayError(f"There is no folder {folder}; name one that 'assay audit' has left.")
    if not folder.is_dir():
        raise AssayError(f"{folder} is a file; name the folder that 'assay audit' has left.")
    return told(Record.read(folder))


def told(record: Record) -> Record:
    """The record with the stories of its audits; those of an earlier version get today's."""
    if record.told:
        return record
    from assay.audits.conclusions import tell

    return tell(record)


@contextmanager
def _drawable(*folders: Path) -> Iterator[None]:
    """Within, what is missing in a record, or is none of what an audit leaves, is told in a sentence."""
    try:
        yield
    except (AssayError, OSError, MemoryError):
        raise
    except Exception as fault:  # of templates and drawings: a summary may hold anything
        listed = ", ".join(map(str, folders))
        raise AssayError(
            f"{listed} cannot be shown ({type(fault).__name__}: {reason(fault)}); run the audit again, "
            "with another --out."
        ) from fault


def free_place(path: Path) -> Path:
    """The path, where a file can be written there."""
    if path.is_dir():
        raise AssayError(f"{path} is a folder; name a file for the report.")
    if path.name in OWN and (path.parent / SUMMARY).is_file():
        raise AssayError(f"{path} holds the audit itself; name another file for the report.")
    if not path.parent.is_dir():
        raise AssayError(f"There is no folder {path.parent} to write {path.name} in; make it first.")
    return path


def _some() -> str:
    """A finished audit of this place, for an example that works."""
    found = sorted(HOME.glob(f"*/{SUMMARY}"))
    return str(found[0].parent) if found else f"{HOME}/my-audit"

"""Finished audits and the ways to look at them: reports and comparisons, written as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from assay.errors import AssayError, reason
from assay.records import EXAMPLES, INSTANCES, SUMMARY, Finding, Record


@dataclass(frozen=True)
class Result:
    """A finished audit: its record, and the ways to look at it."""

    record: Record

    @property
    def findings(self) -> list[Finding]:
        return self.record.findings

    def report(self, path: str | Path) -> Path:
        """Writes the report in the form that the name ends in: .html, .pdf, .md or .json."""
        from assay.report.audit import write
        from assay.report.save import FORMS

        form = Path(path).suffix.lower().lstrip(".")
        if form not in FORMS:
            raise AssayError(f"{path} names no form of report; let it end in .{', .'.join(FORMS)}.")
        write(self.record, Path(path), form)
        return Path(path)

    def figures(self, folder: str | Path, form: str = "svg") -> list[Path]:
        """Writes every figure that the audit has, as svg, png or pdf."""
        from assay.report.figures import figures, save

        drawn = figures(self.record)
        for name, figure in drawn.items():
            save(figure, Path(folder) / f"{name}.{form}")
        return [Path(folder) / f"{name}.{form}" for name in drawn]

    def save(self, folder: str | Path) -> Path:
        """Writes the record, for 'assay report', 'assay figures' and 'assay serve'."""
        self.record.write(Path(folder))
        return Path(folder)

    def _repr_html_(self) -> str:
        from assay.report import notebook

        return notebook.audit(self.record)

    def __str__(self) -> str:
        from assay.report.audit import brief
        from assay.report.console import shown

        console = Console(width=100)
        with console.capture() as capture:
            console.print(*shown(brief(self.record, console.width)), sep="\n", highlight=False, markup=False)
        return capture.get()


# Reports and comparisons of finished audits, written as files.


HOME = Path("runs")
"""Where audits lie that were made without --out."""

OWN = (SUMMARY, INSTANCES, EXAMPLES, "plan.json")
"""What an audit needs to be read and to go on; no report takes their place."""


@dataclass(frozen=True)
class Answered:
    """A finished answer of a verb as plain numbers and words, and the ways to look at it."""

    answer: dict[str, Any]

    @property
    def page(self) -> Any:
        """The module that draws it."""
        raise NotImplementedError

    def report(self, path: str | Path) -> Path:
        """Writes the page, or its Markdown, PDF or JSON, as the name ends in, and says where."""
        from assay.report.save import save

        save(self.page.document(self.answer), Path(path))
        return Path(path)

    def __str__(self) -> str:
        return str(self.page.headline(self.answer))


@dataclass(frozen=True)
class Report:
    """A report that was written, of one audit or of a comparison of several."""

    path: Path
    record: Record | None = None
    comparison: Any = None

    def __str__(self) -> str:
        console = Console(width=100)
        with console.capture() as capture:
            for line in self.lines(console.width):
                console.print(line, highlight=False, markup=False)
        return capture.get()

    def lines(self, width: int) -> list[Any]:
        """The outcome for a terminal."""
        from assay.report import audit, compare
        from assay.report.console import shown

        made = compare.brief(self.comparison, width) if self.record is None else audit.brief(self.record, width)
        return list(shown(made))


def report(*runs: Any, format: str | None = None, out: str | Path | None = None) -> Report:
    """Writes the report of a finished audit, or compares several, and says where.

    Each is the folder that an audit has left, or what assay.audit has returned. The form is html, pdf, md or json: the
    one that is named, or the one that `out` ends in. Without `out` it is written beside the audit.
    """
    place = None if out is None else Path(out)
    form = chosen_form(format, place)
    return (_compared if len(runs) > 1 else _reported)(runs, form, place)


def chosen_form(form: str | None, out: Path | None) -> str:
    """What to write: the form that was asked for, else the one that the name of the file ends in, else a page."""
    from assay.report.save import FORMS

    ending = out.suffix.lower().lstrip(".") if out is not None else ""
    told = ending if ending in FORMS else None
    if form and told and form != told:
        raise AssayError(f"{out} would end in .{told} and hold {form}; leave out --format, or change the name.")
    return form or told or "html"


def _reported(runs: Sequence[Any], form: str, out: Path | None) -> Report:
    """The report of one audit."""
    from assay.report.audit import write
    from assay.report.save import FORMS

    if not runs:
        raise AssayError(f"Name the folder of a finished audit, such as: assay report {_some()}")
    record, folder = _record(runs[0]), _folder(runs[0])
    if form not in FORMS:
        raise AssayError(f"A report is written as {', '.join(FORMS)}, not as {form}.")
    path = free_place(out or folder / f"report.{form}")
    if path.exists() and path.suffix.lower() != f".{form}":  # texts or a plan, by a slip: no report is called so
        raise AssayError(f"{path} is there already, and its name is not that of a report; name another with --out.")
    with drawable(folder):
        write(record, path, form)
    return Report(path, record=record)


def _compared(runs: Sequence[Any], form: str, out: Path | None) -> Report:
    """Several audits side by side, and which differences exceed noise."""
    from assay.grading.differences import differences
    from assay.report.compare import document, ours
    from assay.report.save import save

    path = free_place(out or Path(f"comparison.{form}"))
    if path.exists() and not ours(path):
        raise AssayError(f"{path} is there already and is no comparison of assay; name another file with --out.")
    folders = [Path(each) if isinstance(each, str | Path) else Path(f"run {n}") for n, each in enumerate(runs, 1)]
    names = run_names(folders)
    records = {name: _record(each) for name, each in zip(names, runs, strict=True)}
    with drawable(*names.values()):
        comparison = differences(records)
        save(document(comparison), path, form)
    return Report(path, comparison=comparison)


def _record(run: Any) -> Record:
    if isinstance(run, Record | Result):
        return told(run if isinstance(run, Record) else run.record)
    if not isinstance(run, str | Path):
        raise AssayError(f"A report is of a folder or of what assay.audit returns, not of {type(run).__name__}.")
    return opened(Path(run))


def _folder(run: Any) -> Path:
    return Path(run) if isinstance(run, str | Path) else Path()


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
    from assay.audits.findings import tell

    return tell(record)


@contextmanager
def drawable(*folders: Path) -> Iterator[None]:
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

"""A finished audit in Python: printed, shown in a notebook, written in several forms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from assay.errors import AssayError
from assay.records import Finding, Record


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

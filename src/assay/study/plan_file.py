"""The plan of a study in its folder: complete and with absolute paths, so that it means the same anywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.files import write_text
from assay.study import plans
from assay.study.plans import NAME, StudyPlan

FIRST = "# Written by 'assay study': the plan of what is in this folder; paths are whole, and files have their sha256."
RUNS = Path("runs")
BARE = re.compile(r"[A-Za-z0-9_-]+")


def load(place: Path, out: Path | None = None) -> tuple[StudyPlan, Path]:
    """A plan and the folder of its study, from the plan's file or from that folder."""
    if not place.is_dir():
        plan = plans.read(place)
        return plan, out or RUNS / plan.name
    if not (place / NAME).is_file():
        raise AssayError(f"{place} is no folder of a study: it has no {NAME}; name the file of a plan.")
    if out is not None and out.resolve() != place.resolve():
        raise AssayError(f"{place} is the folder of a study already; leave --out out, or name the file of a plan.")
    return plans.read(place / NAME), place


def store(plan: StudyPlan, place: Path, read_from: Path) -> None:
    """Writes the plan into the folder, unless it was read from there; never replaces a plan written by a person."""
    target = place / NAME
    if read_from.is_dir() or (target.exists() and target.samefile(read_from)):
        return
    if target.exists() and not target.read_text(encoding="utf-8").startswith(FIRST):
        raise AssayError(f"There is another plan, {target}, which is not to be lost; choose another --out.")
    place.mkdir(parents=True, exist_ok=True)
    write_text(target, toml(plan))


def toml(plan: StudyPlan) -> str:
    """The plan as TOML, which parses to the same plan wherever it lies."""
    corpora = ",\n".join(f"  {_value(_some(asdict(each)))}" for each in plan.corpora)
    lines = [
        FIRST,
        f"name = {_value(plan.name)}",
        f"corpora = [\n{corpora},\n]",
        f"seeds = {_value(plan.seeds)}",
        f"data_seed = {_value(plan.data_seed)}",
    ]
    for kind in plan.models:
        own = {"base": kind.base, "path": kind.path, "sha256": kind.sha256}
        lines += _section(f"[models.{_key(kind.name)}]", own | dict(kind.options))
    for audit_set in plan.audits:
        held = asdict(audit_set)
        lines += _section(f"[audits.{_key(held.pop('name'))}]", held)
    for question in plan.questions:
        lines += _section("[[questions]]", asdict(question))
    return "\n".join(lines) + "\n"


def _section(title: str, held: Mapping[str, Any]) -> list[str]:
    return ["", title, *(f"{name} = {_value(value)}" for name, value in _some(held).items())]


def _some(held: Mapping[str, Any]) -> dict[str, Any]:
    """The table without None, which TOML lacks."""
    return {name: value for name, value in held.items() if value is not None}


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_value(each)}" for name, each in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)

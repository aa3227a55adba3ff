"""Parses the entries of a plan: corpora, models and sets of audits, from TOML values to trial parts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from assay.data.catalogue import CORPORA
from assay.data.corpora import ours
from assay.data.datasets import PREFIX
from assay.data.planted import PLANTED
from assay.data.tables import table_suffix
from assay.errors import AssayError, unknown
from assay.study.toml_values import from_table, options, table
from assay.study.trials import AuditSet, Kind, Source


def source(given: Any, beside: Path) -> Source:
    """A corpus; a file or folder of that name is searched `beside` the plan."""
    entry: Source = from_table(
        Source, {"name": given} if isinstance(given, str) else table(given, "corpora"), "corpora"
    )
    if ours(entry.name) or entry.name.startswith(PREFIX):
        if entry.sha256 is not None:
            raise AssayError(f"{entry.name!r} is no file, so it has no sha256.")
        return entry
    path = beside / Path(entry.name).expanduser()
    if path.exists():
        digest = checked_hash(path, entry.sha256)
        return replace(entry, name=str(path.resolve()), shown=entry.shown or entry.name, sha256=digest)
    if entry.sha256 is not None:  # of a study that was made elsewhere: what it was is known
        return entry
    if table_suffix(path):
        raise AssayError(f"There is no file {path}.")
    raise unknown("corpus", entry.name, [*CORPORA, *PLANTED])


def kind(name: str, given: Any, beside: Path) -> Kind:
    """A kind of model; a trained model or pretrained base in a folder is searched `beside` the plan."""
    rest = dict(table(given, f"models.{name}"))
    own: dict[str, Any] = {each: rest.pop(each, None) for each in ("base", "path", "sha256")}
    for each, value in own.items():
        if value is not None and not (isinstance(value, str) and value):
            raise AssayError(f"{each} of models.{name} is a text, not {value!r}.")
    if own["path"] is not None and (rest or own["base"] is not None):
        raise AssayError(f"The model {name!r} is finished, so it has a path and nothing else.")
    _find(own, name, beside)
    entry = Kind(name, tuple(sorted(options(rest, _options(own["base"]), f"models.{name}").items())), **own)
    entry.check()
    return entry


def audit_sets(given: Any) -> tuple[AuditSet, ...]:
    """The sets of audits; a single one needs no name."""
    audits = table(given, "audits")
    if audits and not all(isinstance(each, Mapping) for each in audits.values()):
        audits = {"audits": audits}
    return tuple(from_table(AuditSet, {"name": name, **each}, f"audits.{name}") for name, each in audits.items())


def checked_hash(path: Path, known: str | None = None) -> str:
    """The hash of a file or folder; raises where it differs from the `known` one."""
    found = _sha256(path.resolve())
    if known not in (None, found):
        raise AssayError(f"{path} is not what it was when the study was planned; begin another in a folder of its own.")
    return found


def _sha256(path: Path) -> str:
    """Content hash of a file or folder, independent of its path."""
    if path.is_file():
        state = path.stat()
        return _read(path, state.st_mtime_ns, state.st_size)
    digest = hashlib.sha256()
    for each in sorted(path.rglob("*")):
        if each.is_file():
            digest.update(f"{each.relative_to(path).as_posix()} {_sha256(each)}\n".encode())
    return digest.hexdigest()


@cache
def _read(path: Path, changed: int, size: int) -> str:
    """The hash of a file, cached by modification time and size."""
    with path.open("rb") as held:
        return hashlib.file_digest(held, "sha256").hexdigest()


def _find(own: dict[str, Any], name: str, beside: Path) -> None:
    """Resolves a folder name to its path and hash."""
    key = "path" if own["path"] is not None else "base"
    found = beside / str(own[key] or "")
    if own[key] is not None and found.is_dir():
        own |= {key: str(found.resolve()), "sha256": checked_hash(found, own["sha256"])}
    elif own["path"] is not None and own["sha256"] is None:
        raise AssayError(f"The folder {found} of the model {name!r} does not exist.")


def _options(base: str | None) -> dict[str, Any]:
    """The options of a kind of model with their types; the seed belongs to the plan."""
    from assay.models.config import Architecture, Training

    steps = get_type_hints(Training)
    if base is not None:
        return {**steps, "head": str, "frozen": bool, "dtype": str}
    return {**get_type_hints(Architecture), **steps, "preset": str}

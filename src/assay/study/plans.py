"""Plans: a grid of corpora, models, seeds and sets of audits, read from TOML and stored as TOML."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from assay.data.corpora import PREFIX, ours
from assay.data.planted import PLANTED
from assay.data.published import CORPORA
from assay.data.tables import table_suffix
from assay.errors import AssayError, unknown
from assay.explainers.choice import bare
from assay.files import write_text
from assay.study.trials import AuditSet, Kind, Source, Trial

# Converts TOML values to the types of options; a mismatch is one sentence.


Made = TypeVar("Made")
SAID = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", tuple: "a list"}


def coerced(value: Any, kind: Any, name: str) -> Any:
    """The value as that type: lists become tuples, and integers are accepted as floats."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))  # TOML has no None
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        return tuple(coerced(each, get_args(kind)[0], f"each of {name}") for each in value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise AssayError(f"{name} is {SAID[get_origin(kind) or kind]}, not {value!r}.")
    return value


def options(given: Mapping[str, Any], kinds: Mapping[str, Any], where: str) -> dict[str, Any]:
    """All entries of a table, each as its type; unknown ones are refused."""
    for name in given:
        if name not in kinds:
            raise unknown(f"entry of {where}", name, kinds)
    return {name: coerced(value, kinds[name], f"{name} of {where}") for name, value in given.items()}


def from_table(kind: type[Made], given: Mapping[str, Any], where: str) -> Made:
    """A dataclass from a table."""
    known = options(given, get_type_hints(kind), where)
    for each in fields(kind):  # type: ignore[arg-type]
        if each.default is MISSING and each.default_factory is MISSING and each.name not in known:
            raise AssayError(f"An entry of {where} lacks its {each.name}.")
    return kind(**known)


def table(value: Any, name: str) -> Mapping[str, Any]:
    """The value, checked to be a table."""
    if not isinstance(value, Mapping):
        raise AssayError(f"{name} is a table of TOML, not {value!r}.")
    return value


# Parses the entries of a plan: corpora, models and sets of audits, from TOML values to trial parts.


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


# Plans: a grid of corpora, models, seeds and sets of audits, read from TOML.


NAME = "plan.toml"
PLAIN = re.compile(r"\w[\w. -]*")  # what a folder can be called


@dataclass(frozen=True)
class Question:
    """One table of a study: a measure of an audit for every explainer, each tested against a baseline."""

    audit: str
    measure: str
    title: str = ""
    against: str = "random"
    subjects: tuple[str, ...] = ()  # all that there are, where none is named


@dataclass(frozen=True)
class StudyPlan:
    """A grid: every corpus with every model, seed and set of audits."""

    name: str
    corpora: tuple[Source, ...]
    models: tuple[Kind, ...]
    audits: tuple[AuditSet, ...] = (AuditSet("audits"),)
    seeds: tuple[int, ...] = (0,)
    data_seed: int = 0  # decides what is generated or split; models of all seeds see the same texts
    questions: tuple[Question, ...] = ()

    def __post_init__(self) -> None:
        for title, names in (
            ("corpus", [each.title for each in self.corpora]),
            ("model", [each.name for each in self.models]),
            ("seed", list(map(str, self.seeds))),
            ("set of audits", [each.name for each in self.audits]),
        ):
            if not names or len(set(names)) < len(names):
                raise AssayError(f"A plan names each {title} once, and at least one.")
        if not PLAIN.fullmatch(self.name):
            raise AssayError(f"A plan's name is what its folder is called, without slashes, not {self.name!r}.")
        held = {bare(name) for each in self.audits for name in each.audits}
        for question in self.questions:
            if question.audit not in held:
                raise unknown("audit of a question", question.audit, held)

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """All cells of the grid. Models vary fastest, so that trials that share a model are far apart."""
        return tuple(
            Trial(corpus, kind, seed, audit_set.on(corpus), self.data_seed)
            for audit_set in self.audits
            for corpus in self.corpora
            for seed in self.seeds
            for kind in self.models
            if kind.path is None or seed == self.seeds[0]  # a finished model was trained by one seed
        )


def read(path: Path) -> StudyPlan:
    """The plan in a file; an error in it is one sentence."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as fault:
        raise AssayError(f"There is no plan {path}.") from fault
    except (OSError, ValueError) as fault:
        raise AssayError(f"{path} cannot be read as TOML: {fault}.") from fault
    try:
        name = path.resolve().parent.name if path.name == NAME else path.stem
        return plan_of({"name": name, **given}, path.parent)
    except AssayError as fault:
        raise AssayError(f"{path}: {fault}") from fault


def plan_of(given: Mapping[str, Any], beside: Path = Path()) -> StudyPlan:
    """The plan from parsed TOML; files are searched `beside` it."""
    known = {each.name for each in fields(StudyPlan)}
    for name in given:
        if name not in known:
            raise unknown("entry of a plan", name, known)
    models = table(_needed(given, "models"), "models")
    return StudyPlan(
        coerced(given.get("name", "study"), str, "The name of a plan"),
        tuple(source(each, beside) for each in _list(_needed(given, "corpora"), "corpora")),
        tuple(kind(name, each, beside) for name, each in models.items()),
        audit_sets(given.get("audits", {})) or (AuditSet("audits"),),
        tuple(_seed(each, "Each seed") for each in _list(given.get("seeds", [0]), "seeds")),
        _seed(given.get("data_seed", 0), "The data_seed"),
        tuple(
            from_table(Question, table(each, "questions"), "questions")
            for each in _list(given.get("questions", []), "questions")
        ),
    )


def _seed(value: Any, name: str) -> int:
    if type(value) is not int or value < 0:
        raise AssayError(f"{name} must be an integer of at least 0, got {value!r}.")
    return value


def _needed(given: Mapping[str, Any], name: str) -> Any:
    if name not in given:
        raise AssayError(f"A plan needs {name}.")
    return given[name]


def _list(value: Any, name: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise AssayError(f"{name} is a list of TOML, not {value!r}.")
    return value


# The plan of a study in its folder: complete and with absolute paths, so that it means the same anywhere.


FIRST = "# Written by 'assay study': the plan of what is in this folder; paths are whole, and files have their sha256."
RUNS = Path("runs")
BARE = re.compile(r"[A-Za-z0-9_-]+")


def load(place: Path, out: Path | None = None) -> tuple[StudyPlan, Path]:
    """A plan and the folder of its study, from the plan's file or from that folder."""
    if not place.is_dir():
        plan = read(place)
        return plan, out or RUNS / plan.name
    if not (place / NAME).is_file():
        raise AssayError(f"{place} is no folder of a study: it has no {NAME}; name the file of a plan.")
    if out is not None and out.resolve() != place.resolve():
        raise AssayError(f"{place} is the folder of a study already; leave --out out, or name the file of a plan.")
    return read(place / NAME), place


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

"""Trials, and the folder of a study: one model on one corpus, with one seed and one set of audits."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from assay.audits import USUAL_AUDITS
from assay.errors import AssayError
from assay.explainers import USUAL
from assay.files import write_text
from assay.records import EXAMPLES, INSTANCES, SUMMARY, Record
from assay.run.examination import AuditPlan

FORMAT = 1  # of models: raised when the same training would come out otherwise
ANSWERS = 3  # raised when the same model would be explained or audited otherwise


@dataclass(frozen=True)
class Source:
    """A corpus by name or as a file, whole or with `train` of its training texts.

    An `epsilon` of its own counts more than that of the audits.
    """

    name: str
    train: int | None = None
    joined: bool = False
    shown: str = ""
    sha256: str | None = None  # of a file: the same name may hold other texts tomorrow
    epsilon: float | None = None  # change of the output that counts as none, on this corpus

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise AssayError(f"A corpus is a name, or a table with one, not {self.name!r}.")
        if self.train is not None and (type(self.train) is not int or self.train < 1):
            raise AssayError(f"Of a corpus, train must be a number of texts of at least 1, got {self.train!r}.")
        if self.epsilon is not None and not 0 <= self.epsilon < 1:
            raise AssayError(f"Of a corpus, epsilon must be at least 0 and below 1, got {self.epsilon:g}.")

    @property
    def title(self) -> str:
        some = "" if self.train is None else f" ({self.train} texts)"
        return (self.shown or self.name) + some


@dataclass(frozen=True)
class Kind:
    """A kind of model: a preset or a pretrained `base` with options, or a trained one in a folder."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()
    base: str | None = None
    path: str | None = None
    sha256: str | None = None  # of a folder: another model may lie there tomorrow

    def check(self) -> None:
        """Raises where no model can be made with the options."""
        from assay.models.config import Training
        from assay.models.hf_finetuning import FineTuning
        from assay.run.api import recipe

        given = dict(self.options)
        if "seed" in given:
            raise AssayError(f"The seeds of a plan are its own entry; leave seed out of the model {self.name!r}.")
        if self.base is None:
            recipe(**given)
            return
        own = {name: given.pop(name) for name in ("head", "frozen", "dtype") if name in given}
        FineTuning(self.base, **own), Training(**given)


@dataclass(frozen=True)
class AuditSet:
    """A set of audits with the explainers that they test, and the number of test texts."""

    name: str
    explainers: tuple[str, ...] = USUAL
    audits: tuple[str, ...] = USUAL_AUDITS
    limit: int | None = None
    epsilon: float = 0.01

    def __post_init__(self) -> None:
        self.plan(0)  # refuses what cannot be done

    def on(self, corpus: Source) -> AuditSet:
        """The same with the corpus's own epsilon, if it has one."""
        return self if corpus.epsilon is None else replace(self, epsilon=corpus.epsilon)

    def plan(self, seed: int) -> AuditPlan:
        return AuditPlan(self.explainers, self.audits, seed, self.limit, self.epsilon)


@dataclass(frozen=True)
class Trial:
    """One cell of the grid."""

    corpus: Source
    kind: Kind
    seed: int
    audit_set: AuditSet
    data_seed: int = 0

    @property
    def title(self) -> str:
        return f"{self.corpus.title} · {self.kind.name} · seed {self.seed} · {self.audit_set.name}"

    @cached_property
    def identity(self) -> str:
        """A hash of all that decides the numbers, without names."""
        return _hash(
            self._model | {"answers": ANSWERS, "asked": _without(asdict(self.audit_set), "name"), "seed": self.seed}
        )

    @cached_property
    def model_identity(self) -> str:
        """A hash of all that decides the model."""
        return _hash(self._model)

    @property
    def _model(self) -> dict[str, Any]:
        source = _without(asdict(self.corpus), "shown", "epsilon")  # which the audits have taken over
        if self.corpus.sha256 is not None:
            del source["name"]  # a file is what it holds
        kind = _without(asdict(self.kind), "name")
        if self.kind.sha256 is None:
            del kind["sha256"]
        else:
            kind["path" if self.kind.path is not None else "base"] = "folder"  # which is what it holds
        learnt = {} if self.kind.path is not None else {"seed": self.seed}
        return {"format": FORMAT, "corpus": source, "data_seed": self.data_seed, "kind": kind} | learnt

    def json(self) -> dict[str, Any]:
        """As JSON values."""
        made: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return made | {"asked": made.pop("audit_set")}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Trial:
        """From JSON values."""
        kind, audit_set = dict(given["kind"]), dict(given["asked"])
        kind["options"] = tuple((name, _frozen(value)) for name, value in kind["options"])
        audit_set |= {name: tuple(audit_set[name]) for name in ("explainers", "audits")}
        return cls(Source(**given["corpus"]), Kind(**kind), given["seed"], AuditSet(**audit_set), given["data_seed"])


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _without(given: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key not in names}


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def model_folder(place: Path, trial: Trial) -> Path:
    """The folder of a trial's model, shared by all trials that need it."""
    return place / "models" / trial.model_identity


# The folder of a study: results appear in it atomically, with locks between processes.


FILES = (SUMMARY, INSTANCES, EXAMPLES)
MARK = "done.json"  # written last: what it lists is there, and is what it was


@dataclass(frozen=True)
class Folder:
    """Finished trials, failed ones, and locks of those in progress."""

    place: Path

    def done(self, trial: Trial) -> dict[str, Any] | None:
        """The mark of a finished trial; None where it is absent, or a file does not match its hash."""
        return _mark(self.trial(trial))

    def marks(self) -> dict[str, dict[str, Any]]:
        """The marks of all finished trials, by identity, whatever plan they belong to."""
        found = {each.name: _mark(each) for each in sorted((self.place / "trials").glob("[!.]*"))}
        return {identity: mark for identity, mark in found.items() if mark is not None}

    def record(self, trial: Trial) -> Record:
        """The record of a finished trial."""
        return Record.read(self.trial(trial))

    def keep(self, trial: Trial, files: Mapping[str, bytes], about: Mapping[str, Any]) -> None:
        """Moves a result into place atomically; an intact one that exists already stays."""
        target = self.trial(trial)
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
        try:
            for name, content in files.items():
                (scratch / name).write_bytes(content)
            mark = {
                "trial": trial.json(),
                "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                **about,
            }
            write_text(scratch / MARK, json.dumps(mark, indent=1) + "\n")
            scratch.chmod(0o755)
            with self._lock(trial, "keep"):
                if self.done(trial) is None:
                    self.put_aside(target)
                    scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        self.failure(trial).unlink(missing_ok=True)

    def fail(self, trial: Trial, reason: str, details: str = "") -> None:
        """Records why a trial failed; it is skipped until a retry."""
        note = {"trial": trial.json(), "reason": reason, "details": details}
        write_text(self.failure(trial), json.dumps(note, indent=1) + "\n")

    def reason(self, trial: Trial) -> str | None:
        """Why a trial failed, or None."""
        try:
            return str(json.loads(self.failure(trial).read_text(encoding="utf-8"))["reason"])
        except (OSError, ValueError, KeyError):
            return None

    def forget(self, trial: Trial) -> None:
        """Deletes the record of a failure, so that the trial is run again."""
        self.failure(trial).unlink(missing_ok=True)

    def claim(self, trial: Trial) -> FileLock | None:
        """A lock on a trial until released or the process ends; None where another process holds it."""
        # of no thread: an engine may take trials in one, and hand in outcomes in another
        lock = self._lock(trial, "claim", timeout=0, thread_local=False)
        try:
            return lock.acquire().lock
        except Timeout:
            return None

    def claimed(self, trial: Trial) -> bool:
        """Whether a living process holds the lock of a trial; writes nothing."""
        if not self._lock_file(trial, "claim").exists():
            return False
        try:
            lock = self.claim(trial)
        except OSError:  # somebody else's folder, to be read only
            return False
        if lock is not None:
            lock.release()
        return lock is None

    def trial(self, trial: Trial) -> Path:
        return self.place / "trials" / trial.identity

    def failure(self, trial: Trial) -> Path:
        return self.place / "failed" / f"{trial.identity}.json"

    def _lock_file(self, trial: Trial, purpose: str) -> Path:
        return self.place / "locks" / f"{trial.identity}.{purpose}"

    def _lock(self, trial: Trial, purpose: str, **options: Any) -> FileLock:
        path = self._lock_file(trial, purpose)
        path.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(path, **options)

    def put_aside(self, target: Path) -> None:
        """Renames damaged files instead of deleting them."""
        if target.exists():
            aside = self.place / "damaged"
            aside.mkdir(exist_ok=True)
            target.rename(Path(tempfile.mkdtemp(prefix=f"{target.name}-", dir=aside)) / target.name)


def files_of(record: Record, folder: Path) -> dict[str, bytes]:
    """The files of a record in a folder that a study stores."""
    if not (folder / SUMMARY).is_file():
        record.write(folder)
    return {name: (folder / name).read_bytes() for name in FILES}


def opened(place: Path) -> Folder:
    """The folder, checked to be writable."""
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise AssayError(f"{place} cannot be a folder of a study: {fault}.") from fault
    return Folder(place)


def _mark(folder: Path) -> dict[str, Any] | None:
    try:
        mark: dict[str, Any] = json.loads((folder / MARK).read_text(encoding="utf-8"))
        whole = all(_sha256(folder / name) == sha256 for name, sha256 in mark["files"].items())
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    return mark if whole and set(mark["files"]) == set(FILES) else None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Status of a study: which trials are done, failed and why, in progress, or missing.


STATES = ("done", "failed", "under way", "missing")


@dataclass(frozen=True)
class TrialStatus:
    """The status of one trial."""

    trial: Trial
    state: str  # one of STATES
    reason: str | None = None  # why it failed
    seconds: float | None = None  # that it took


def trial_statuses(trials: Sequence[Trial], folder: Folder) -> list[TrialStatus]:
    """The status of each trial, without duplicates."""
    return [_status_of(trial, folder) for trial in unique(trials)]


def unique(trials: Sequence[Trial]) -> list[Trial]:
    """Trials without duplicates, by identity."""
    return list({trial.identity: trial for trial in trials}.values())


def counted(found: Iterable[TrialStatus]) -> dict[str, int]:
    """The number of trials in each state."""
    counts = Counter(each.state for each in found)
    return {state: counts[state] for state in STATES}


def reasons(found: Iterable[TrialStatus]) -> dict[str, list[str]]:
    """The failed trials, by reason."""
    told: dict[str, list[str]] = {}
    for each in found:
        if each.reason is not None:
            told.setdefault(each.reason, []).append(each.trial.title)
    return told


def _status_of(trial: Trial, folder: Folder) -> TrialStatus:
    mark = folder.done(trial)
    if mark is not None:
        return TrialStatus(trial, "done", seconds=float(mark["seconds"]) if "seconds" in mark else None)
    if folder.claimed(trial):  # again, perhaps, after it failed
        return TrialStatus(trial, "under way")
    reason = folder.reason(trial)
    return TrialStatus(trial, "missing" if reason is None else "failed", reason)

"""The folder of a study: results appear in it atomically, with locks between processes."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from assay.errors import AssayError
from assay.files import write_text
from assay.records import EXAMPLES, INSTANCES, SUMMARY, Record
from assay.study.trials import Trial

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

"""One attempt at a trial, isolated so that a failure reaches no other trial."""

from __future__ import annotations

import errno
import shutil
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.study.folder import Folder, files_of
from assay.study.trial_record import make_record, work_folder
from assay.study.trials import Trial

FULL = (errno.ENOSPC, errno.EDQUOT)
NO_MEMORY = "not enough memory"


@dataclass(frozen=True)
class Outcome:
    """Result of an attempt: files to store, stored already, or the reason of a failure."""

    trial: Trial
    seconds: float = 0.0
    reason: str | None = None
    details: str = ""
    full: bool = False  # the disk: no other trial could be stored either
    files: Mapping[str, bytes] | None = None
    device: str = "cpu"

    @property
    def memory(self) -> bool:
        """Whether it ran out of memory: finished work is sound, and another worker can resume it."""
        return (self.reason or "").startswith(NO_MEMORY)

    @property
    def about(self) -> dict[str, Any]:
        """Metadata for the mark of a finished trial."""
        return {"seconds": round(self.seconds, 2), "device": self.device}


def attempt(trial: Trial, place: Path, device: str = "cpu", keep: bool = True) -> Outcome:
    """Runs a trial in a folder; with `keep` the result is stored there, else the files are returned."""
    started, work = time.monotonic(), work_folder(place, trial)
    try:
        record = make_record(trial, place, device)
        outcome = Outcome(trial, time.monotonic() - started, files=files_of(record, work), device=device)
        if keep:
            store_outcome(outcome, Folder(place))
            shutil.rmtree(work, ignore_errors=True)
            return Outcome(trial, outcome.seconds, device=device)
        return outcome
    except Exception as fault:  # whatever a library raises, the other trials go on
        failed = _failed(trial, fault)
        if not (failed.full or failed.memory):  # it may be the work so far that is damaged: begin anew next time
            shutil.rmtree(work, ignore_errors=True)
        return failed


def store_outcome(outcome: Outcome, folder: Folder) -> None:
    """Stores the files of an outcome in the folder."""
    assert outcome.files is not None
    folder.keep(outcome.trial, outcome.files, outcome.about)


def _failed(trial: Trial, fault: Exception) -> Outcome:
    if _is_full(fault):
        return Outcome(trial, reason="the disk is full", full=True)
    if isinstance(fault, MemoryError) or "DefaultCPUAllocator" in str(fault):  # of torch, which has no error of its own
        return Outcome(trial, reason=NO_MEMORY)
    if type(fault).__name__ == "OutOfMemoryError":
        return Outcome(trial, reason=f"{NO_MEMORY} on the device")
    if isinstance(fault, AssayError):
        return Outcome(trial, reason=str(fault))
    told = " ".join(str(fault).split())[:200]
    return Outcome(trial, reason=f"{type(fault).__name__}: {told}", details=traceback.format_exc())


def _is_full(fault: BaseException | None) -> bool:
    """Whether an error means that the disk is full; native libraries raise errors of their own for it."""
    if fault is None:
        return False
    said = "No space left on device" in str(fault)
    return said or getattr(fault, "errno", None) in FULL or _is_full(fault.__cause__)

"""One attempt at a trial, and how it ended: nothing that goes wrong in it reaches other trials."""

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
from assay.study.making import made, work_folder
from assay.study.trials import Trial

FULL = (errno.ENOSPC, errno.EDQUOT)
NO_MEMORY = "not enough memory"


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended: with files to keep, kept already, or with a reason why there are none."""

    trial: Trial
    seconds: float = 0.0
    reason: str | None = None
    details: str = ""
    full: bool = False  # the disk: no other trial could be kept either
    files: Mapping[str, bytes] | None = None
    device: str = "cpu"

    @property
    def memory(self) -> bool:
        """Whether it ended for want of memory: the work so far is sound, and goes on elsewhere."""
        return (self.reason or "").startswith(NO_MEMORY)

    @property
    def about(self) -> dict[str, Any]:
        """What the mark of a finished trial says besides."""
        return {"seconds": round(self.seconds, 2), "device": self.device}


def attempt(trial: Trial, place: Path, device: str = "cpu", keep: bool = True) -> Outcome:
    """Makes a trial in a folder; with `keep` its result is put there, else the files are handed back."""
    started, work = time.monotonic(), work_folder(place, trial)
    try:
        record = made(trial, place, device)
        outcome = Outcome(trial, time.monotonic() - started, files=files_of(record, work), device=device)
        if keep:
            kept(outcome, Folder(place))
            shutil.rmtree(work, ignore_errors=True)
            return Outcome(trial, outcome.seconds, device=device)
        return outcome
    except Exception as fault:  # whatever a library raises, the other trials go on
        failed = _failed(trial, fault)
        if not (failed.full or failed.memory):  # it may be the work so far that is damaged: begin anew next time
            shutil.rmtree(work, ignore_errors=True)
        return failed


def kept(outcome: Outcome, folder: Folder) -> None:
    """Puts the files of an outcome into the folder."""
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
    """Whether the disk is what there is too little of; libraries below Python have errors of their own for it."""
    if fault is None:
        return False
    said = "No space left on device" in str(fault)
    return said or getattr(fault, "errno", None) in FULL or _is_full(fault.__cause__)

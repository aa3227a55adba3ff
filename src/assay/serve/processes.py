"""Processes that outlive the server, each in a session of its own, identified by process id and start time."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
_children: set[int] = set()  # started by this server: it learns how they end


def start(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> int:
    """Starts a process in a new session, appends its output to the log, and returns its id.

    It is no `subprocess.Popen`: nobody waits for it when the server stops.
    """
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    process = os.posix_spawn(command[0], list(command), dict(environment), file_actions=actions, setsid=True)
    _children.add(process)
    return process


def born(process: int) -> str | None:
    """The start time of a process as the kernel counts it, or None where it no longer runs."""
    if not PROC.is_dir():
        told = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(process)], capture_output=True, text=True)
        state, _, moment = told.stdout.strip().partition(" ")
        return moment.strip() if state and not state.startswith("Z") else None
    try:
        told_by_system = (PROC / str(process) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = told_by_system.rpartition(")")[2].split()  # the name before may hold anything
    return None if fields[0] in ("Z", "X") else fields[19]


def ended(process: int, birth: str | None) -> tuple[bool, int | None]:
    """Whether it has ended, and its exit code (negative for a signal), or None where only its parent learned it."""
    if process not in _children:  # a server before this one started it
        return birth is None or born(process) != birth, None
    number, status = os.waitpid(process, os.WNOHANG)
    if number == 0:
        return False, None
    _children.discard(process)
    return True, os.waitstatus_to_exitcode(status)


def stop(process: int, birth: str | None, by: signal.Signals) -> None:
    """Signals the process group, if the process is still the same one."""
    if birth is not None and born(process) == birth:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process, by)


def sweep(process: int) -> None:
    """Kills what is left of the group of a process that has just ended."""
    if process > 1 and born(process) is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)

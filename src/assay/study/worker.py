"""Worker process: reads trials as JSON lines on standard input, runs them, and answers likewise.

It dies with its parent, as their pipe is then closed.

It dies with the process that started it: their pipe is then closed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from assay.study.attempts import Outcome, attempt
from assay.study.trials import Trial

ANSWERED = ("seconds", "reason", "details", "full", "device")


def main() -> None:
    """Answers until standard input closes."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    told: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_listen, args=(told,), daemon=True).start()
    while True:
        job = told.get()
        outcome = attempt(Trial.of(job["trial"]), Path(job["place"]), job["device"])
        print(json.dumps(answer(outcome)), file=answers, flush=True)


def answer(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON values."""
    return {name: value for name, value in asdict(outcome).items() if name in ANSWERED}


def _listen(told: SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        told.put(json.loads(line))
    os._exit(0)  # in the middle of a trial, too: what is finished of it is kept


if __name__ == "__main__":
    main()

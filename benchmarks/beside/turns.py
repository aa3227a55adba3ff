"""Ways that take turns, each in a process of its own: so the memory of each is its own, and none waits for another.

Nothing here needs a library, since one of the peers lives in an environment of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

Scores = list[list[float]]
DEVICE = os.environ.get("BESIDE_DEVICE", "cpu")  # where models are read
ALONE = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}


@dataclass(frozen=True)
class Text:
    """A text, the class that is explained, and given scores of its words, for ways that judge scores."""

    words: str
    label: int
    given: Scores


Way = Callable[[Sequence[Text]], Scores]
Made = TypeVar("Made")


def prepared(known: dict[tuple[str, ...], Made], texts: Sequence[Text], make: Callable[[], Made]) -> Made:
    """What is made of texts before they are explained: on a GPU once, so that explaining alone is timed."""
    if DEVICE == "cpu":
        return make()
    words = tuple(text.words for text in texts)
    if words not in known:
        known[words] = make()
    return known[words]


@dataclass(frozen=True)
class Found:
    """What a way left: its scores, the texts it read forward and backward in a turn, and its peak of memory."""

    scores: Scores
    forward: float
    backward: float
    megabytes: float


class Worker:
    """A way in a process of its own, which is warm when this returns."""

    def __init__(self, python: str, way: str, folder: Path, texts: int) -> None:
        self.log = folder / f"{way.replace(':', '-')}.log"
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [python, "-m", "benchmarks.beside.worker", way, str(folder), str(texts)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | ALONE,
            )

    def ready(self) -> None:
        """Waits until it is warm."""
        self._told()

    def turn(self) -> float:
        """Processor seconds of one turn over all texts."""
        return float(self._asked("go")["seconds"])

    def end(self) -> Found:
        found = Found(**self._asked("end"))
        self.process.wait()
        return found

    def stop(self) -> None:
        """Ends the process, whatever it does."""
        self.process.kill()
        self.process.wait()

    def _asked(self, word: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self._told()

    def _told(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            last = self.log.read_text(encoding="utf-8").strip().splitlines()[-1:]
            raise RuntimeError(last[0] if last else "it ended without a word")
        told: dict[str, Any] = json.loads(line)
        return told


def read(folder: Path) -> list[Text]:
    """The texts of the run, the first a short one that warms up."""
    return [Text(**each) for each in json.loads((folder / "texts.json").read_text(encoding="utf-8"))]


def write(folder: Path, texts: Sequence[Text]) -> None:
    (folder / "texts.json").write_text(json.dumps([asdict(text) for text in texts]), encoding="utf-8")


def serve(way: Way, texts: Sequence[Text], counted: Callable[[], AbstractContextManager[Any]] | None) -> None:
    """Answers `go` with the seconds of a turn, and `end` with what came of it."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer

    def say(**told: Any) -> None:
        print(json.dumps(told), file=answers, flush=True)

    way(texts[:1])
    say(ready=True)
    scores: Scores = []
    passes: dict[str, float] = {}
    for line in sys.stdin:
        if line.strip() == "end":
            break
        with counted() if counted else nullcontext() as cost:
            started = time.process_time()
            scores = way(texts[1:])
            seconds = time.process_time() - started
        passes = {name: getattr(cost, name, float("nan")) for name in ("forward", "backward")}
        say(seconds=seconds)
    say(scores=scores, megabytes=peak_megabytes(), **passes)


def peak_megabytes() -> float:
    """The peak memory of this process alone; `getrusage` would hold that of the process which started it as well."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

"""Many people explain short texts at once, and then more than the app has room for.

python -m benchmarks.serving [--users 50] [--seconds 60] [--pause 0] [--model DIR]

The app runs in a process of its own, on this machine. Every user asks again as soon as the answer is there, or after a
pause: without one this is the worst that so many people can do.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.__main__ import machine

TEXTS = ("A quiet film that keeps its promise.", "Not a good story.", "The last act was dull, but the music is fine.")
PATIENCE = 120.0  # seconds


@dataclass
class Load:
    """What came back: how often each status, how long answers took, and what went wrong."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)

    @property
    def errors(self) -> int:
        """Answers that are neither an explanation nor a clean refusal."""
        return sum(self.faults.values())

    def percentile(self, share: float) -> float:
        return sorted(self.seconds)[min(int(share * len(self.seconds)), len(self.seconds) - 1)]


@dataclass(frozen=True)
class Asking:
    """Requests for explanations of short texts by one model."""

    address: str
    model: str
    explainers: Sequence[str]

    async def crowd(self, users: int, seconds: float, pause: float = 0.0) -> Load:
        """So many users, each of whom asks, reads and asks again, for so long."""
        load, end = Load(), time.monotonic() + seconds

        async def user(client: httpx.AsyncClient, number: int) -> None:
            await self._ask(client, number, load)
            while time.monotonic() < end:
                await asyncio.sleep(pause)
                number += 1
                await self._ask(client, number, load)

        async with self._client(users) as client:
            await asyncio.gather(*(user(client, number) for number in range(users)))
        return load

    async def flood(self, count: int, load: Load | None = None) -> Load:
        """So many requests at the same time; what comes back can be watched."""
        load = Load() if load is None else load
        async with self._client(count) as client:
            await asyncio.gather(*(self._ask(client, number, load) for number in range(count)))
        return load

    def _client(self, connections: int) -> httpx.AsyncClient:
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        return httpx.AsyncClient(base_url=self.address, limits=limits, timeout=PATIENCE, trust_env=False)

    async def _ask(self, client: httpx.AsyncClient, number: int, load: Load) -> None:
        text = TEXTS[number % len(TEXTS)]
        asked = {"model": self.model, "text": text, "explainers": list(self.explainers)}
        start = time.perf_counter()
        try:
            answer = await client.post("/api/explain", json=asked)
        except httpx.HTTPError as fault:
            load.faults[type(fault).__name__] += 1
            return
        load.statuses[answer.status_code] += 1
        if answer.status_code == 200 and answer.json()["text"] == text:
            load.seconds.append(time.perf_counter() - start)
        elif answer.status_code != 503 or "retry-after" not in answer.headers:
            load.faults[f"status {answer.status_code}"] += 1


@contextmanager
def serving(model: Path, runs: Path) -> Iterator[tuple[str, int]]:
    """The address of an app in another process, and the number of that process."""
    command = [sys.executable, "-m", "assay.cli", "serve", str(runs), "--model", str(model), "--port", "0"]
    told = runs.parent / "told.txt"
    with told.open("w") as file:
        process = subprocess.Popen(command, stderr=file, env=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        yield _address(told, process), process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)


def _address(told: Path, process: subprocess.Popen[bytes]) -> str:
    """Where the app says that it is, once it answers there."""
    while process.poll() is None:
        time.sleep(0.1)
        if found := re.search(r"http://[\w.:]+", told.read_text()):
            with suppress(httpx.HTTPError):
                httpx.get(f"{found.group()}/api/models", trust_env=False)
                return found.group()
    raise RuntimeError(told.read_text())


def memory(process: int) -> int:
    """Megabytes of memory that a process holds."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def trained(folder: Path) -> Path:
    """The small model: as the README's."""
    import assay

    assay.train(assay.corpus("planted:negation"), encoder="lstm", seed=0, out=folder)
    return folder


async def measure(asking: Asking, process: int, users: int, seconds: float, pause: float) -> None:
    """Prints what the crowd and the flood found."""
    held = {"at the start": memory(process)}
    first = await asking.crowd(users, min(10.0, seconds), pause)
    held["after 10 s"] = memory(process)
    rest = await asking.crowd(users, max(seconds - 10.0, 0.0), pause)
    held["at the end"] = memory(process)
    both = Load(first.statuses + rest.statuses, first.seconds + rest.seconds, first.faults + rest.faults)
    flood = await asking.flood(8 * users)
    after = await asking.flood(1)
    print(f"\n{users} users, {seconds:.0f} s, {len(asking.explainers)} explainers; {machine()}\n")
    print("| | |\n|---|---|")
    print(f"| requests | {sum(both.statuses.values())} ({len(both.seconds) / seconds:.1f} a second) |")
    print(f"| errors | {both.errors} {dict(both.faults) or ''} |")
    print(f"| refused (503) | {both.statuses[503]} |")
    print(f"| answer, median | {statistics.median(both.seconds):.2f} s |")
    print(f"| answer, 95 % within | {both.percentile(0.95):.2f} s |")
    print(f"| memory of the app | {', '.join(f'{size} MB {when}' for when, size in held.items())} |")
    print(
        f"| {8 * users} requests at once | {flood.statuses[200]} answered, {flood.statuses[503]} refused with a time "
        f"to come back, {flood.errors} errors {dict(flood.faults) or ''} |"
    )
    print(f"| one request after that | {'answered' if after.statuses[200] else 'not answered'} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--model", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        runs = Path(name) / "runs"
        runs.mkdir()
        model = options.model or trained(Path(name) / "model")
        with serving(model, runs) as (address, process):
            (about,) = httpx.get(f"{address}/api/models", trust_env=False).json()["models"]
            asking = Asking(address, about["name"], about["usual"])
            asyncio.run(measure(asking, process, options.users, options.seconds, options.pause))


if __name__ == "__main__":
    main()

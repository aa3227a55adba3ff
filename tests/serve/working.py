"""A stand-in for the command line that audits nothing, quickly; its seed says how it behaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

GOES_WELL, WAITS, FAILS, IS_DEAF, IS_KILLED, CONTINUES = range(6)


def tell(done: int, left: float | None = 60.0) -> None:
    place = Path(os.environ["ASSAY_PROGRESS"])
    scratch = place.with_suffix(".scratch")
    scratch.write_text(json.dumps({"task": "auditing 9 explainers", "done": done, "total": 200, "left": left}))
    scratch.replace(place)


def main(options: dict[str, str]) -> None:
    out, way = Path(options["--out"]), int(options["--seed"])
    out.mkdir(exist_ok=True)
    print(f"way {way}", flush=True)
    if way == IS_DEAF:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if way in (WAITS, IS_DEAF):
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(120)"])
        (out / "child").write_text(str(child.pid))
    tell(35)
    if way == FAILS:
        print(f"{options['--data']} has no column 'x'; it has <b>.", flush=True)
        sys.exit(2)
    if way == IS_KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(5000 if way in (WAITS, IS_DEAF) else 0):  # not for ever: a test that fails may forget about it
        if (out / "enough").exists():
            break
        time.sleep(0.02)
    if way == CONTINUES and not (out / "begun").exists():
        (out / "begun").touch()
        sys.exit("broke off")
    tell(200, 0.0)
    (out / "summary.json").write_text("{}")


if __name__ == "__main__":
    main(dict(word.split("=", 1) for word in sys.argv[2:]))

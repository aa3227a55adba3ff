"""Who makes the trials: processes of this machine, or a cluster. An engine is shaped like `map`."""

from __future__ import annotations

from assay.study.engines.contract import Engine as Engine

ENGINES = ("local", "ray")

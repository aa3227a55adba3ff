"""Engines by name, with their settings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib.util import find_spec

from assay.errors import AssayError, unknown
from assay.study.engines import ENGINES, Engine
from assay.study.engines.local import Local

OF_RAY = ("address", "cpus", "gpus", "shared")


@dataclass(frozen=True)
class EngineSettings:
    """Settings of an engine; None is the engine's default."""

    jobs: int | None = None
    devices: tuple[str, ...] = ()
    retries: int | None = None
    address: str | None = None
    cpus: float | None = None
    gpus: float | None = None
    shared: bool | None = None

    def given(self, *names: str) -> dict[str, object]:
        """Those of the named settings that are set."""
        return {name: value for name in names if (value := getattr(self, name)) not in (None, ())}


def engine(name: str, wanted: EngineSettings | None = None) -> Engine:
    """The engine of that name."""
    options = wanted or EngineSettings()
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    meant = OF_RAY if name == "ray" else ("jobs",)
    for option in options.given(*(each.name for each in fields(EngineSettings))):
        if option not in (*meant, "devices", "retries"):
            raise AssayError(f"--{option} is not for the engine {name}; leave it out, or choose another --engine.")
    return _ray(options) if name == "ray" else _local(options)


def _local(options: EngineSettings) -> Engine:
    usual = {"jobs": max(1, len(options.devices))}  # one for each device, where several are named
    return Local(**usual | options.given("jobs", "retries", "devices"))  # type: ignore[arg-type]


def _ray(options: EngineSettings) -> Engine:
    if find_spec("ray") is None:
        raise AssayError("The engine ray needs the library ray; install it: pip install 'assay[cluster]'.")
    from assay.study.engines.cluster import Ray

    usual = {"device": ",".join(options.devices) or ("cuda" if options.gpus else "cpu")}
    return Ray(**usual | options.given(*OF_RAY, "retries"))  # type: ignore[arg-type]

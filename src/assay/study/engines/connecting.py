"""Connects to a Ray cluster, or starts a temporary one."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from assay.errors import AssayError, library_errors

PATIENCE = 5.0  # seconds until somebody must have answered


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Context manager: Ray, connected; an existing connection stays open."""
    try:
        import ray
    except ImportError as fault:
        raise AssayError("The engine ray needs the library ray; install it: pip install 'assay[cluster]'.") from fault
    if ray.is_initialized():
        yield ray
        return
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if where == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster of ours reports to nobody
        options["include_dashboard"] = False
    with library_errors(lambda why: f"No Ray cluster can be used at {where!r} ({why}); 'ray status' there tells more."):
        _reach(where)
        ray.init(where, **options)
    try:
        yield ray
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Raises where nobody listens at the address; Ray itself would retry for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "://" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()

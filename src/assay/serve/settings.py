"""Settings of the app: folders, address, token and limits."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """Limits; whatever exceeds them is refused in one sentence."""

    text: int = 20_000  # characters of a text that is typed in
    waiting: int = 100  # requests that wait for the model
    upload: int = 20 * 2**20  # bytes of a file
    rows: int = 50_000  # texts in a file
    seconds: int = 3600  # that a job may run
    jobs: int = 50  # that wait


@dataclass(frozen=True)
class Settings:
    """Run folders, the first of which also takes new jobs and uploads; host, port and token."""

    folders: tuple[Path, ...]
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None  # asked for when other machines can reach the app
    limits: Limits = Limits()

    @property
    def home(self) -> Path:
        return self.folders[0]

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host name or address is a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False

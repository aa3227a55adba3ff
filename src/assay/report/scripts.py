"""The scripts and data that a page carries inside, and the policy that lets these scripts run and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

STATIC = Path(__file__).parent / "static"
ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@cache
def static(name: str) -> str:
    """The text of one of the files that pages share."""
    return (STATIC / name).read_text(encoding="utf-8")


def policy(scripts: Sequence[str] = ()) -> str:
    """A content security policy under which a page asks for nothing and runs these inlined scripts only."""
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    allowed = f"script-src {hashes}; " if hashes else ""
    return f"default-src 'none'; {allowed}style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def data(value: Any) -> str:
    """A value as JSON that no parser of HTML takes for markup."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(ESCAPED)


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

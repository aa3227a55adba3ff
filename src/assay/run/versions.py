"""What numbers depend on besides models and data: the versions of libraries."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

PACKAGES = ("torch", "numpy", "scipy", "pyarrow", "tokenizers", "safetensors")


def versions() -> dict[str, str]:
    """Of Python and the libraries; of transformers where it was used."""
    used = PACKAGES + ("transformers",) * ("transformers" in sys.modules)
    return {"python": platform.python_version()} | {name: _version(name) for name in used}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"

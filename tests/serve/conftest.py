"""Figures are drawn once."""

from tests.drawn import drawn_once

__all__ = ["drawn_once"]

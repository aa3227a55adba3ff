"""The command line: the same verbs as the Python functions."""

from __future__ import annotations

from assay.cli.app import app as app
from assay.cli.app import console as console
from assay.cli.app import main as main

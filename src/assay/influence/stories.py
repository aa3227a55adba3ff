"""How the scores of training texts are read, as the stories of methods tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.stories import Measure, Story

CHANGE = Story(
    measures=(Measure("score", "without it"),),
    reading="Each number is how far {target} is predicted to move if the model is trained without that text: without a "
    "supporting text it would {lower}, without an opposing one {higher}.",
)
"""How scores of training texts are read."""


def story(answer: Mapping[str, Any]) -> Story:
    """The story that a file holds, with the usual words for what it lacks; older files hold none."""
    own = Story.of(answer["method"].get("story"))
    return replace(own, measures=own.measures or CHANGE.measures, reading=own.reading or CHANGE.reading)

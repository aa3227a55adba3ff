"""How the scores of training texts are read, as the stories of methods tell it."""

from __future__ import annotations

from assay.stories import Measure, Story

CHANGE = Story(
    measures=(Measure("score", "without it"),),
    reading="Each number is how far {target} is predicted to move if the model is trained without that text: without a "
    "supporting text it would {lower}, without an opposing one {higher}.",
)
"""How scores of training texts are read."""

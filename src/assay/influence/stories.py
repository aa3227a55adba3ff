"""How the scores of training texts are read: the stories of influence methods, each with its unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.stories import Measure, Story

CHANGE = Story(
    measures=(Measure("score", "without it"),),
    finding="without the {count} training texts that it leans on most, {target} would be about {moved} {less}; it is "
    "{value}",
    reading="Each number is how far {target} is predicted to move if the model is trained without that text: without a "
    "supporting text it would {lower}, without an opposing one {higher}.",
)
"""Scores are changes of the target."""

ORDER = replace(
    CHANGE,
    finding="it leans most on {count} training texts, by a score that ranks them",
    reading="A score has the sign of the change of {target} without that text (without a supporting text it would "
    "{lower}, without an opposing one {higher}), but not its size: only the order of texts counts.",
)
"""Scores have the sign of a change of the target, and no unit."""

STEP = replace(
    CHANGE,
    measures=(Measure("score", "without it, by the learning rate"),),
    finding="it leans most on {count} training texts, by what one step of training without them would change",
    reading="Each number is how far {target} would move by one step of gradient descent that lacks the text, divided "
    "by the learning rate: without a supporting text it would {lower}, without an opposing one {higher}.",
)
"""Scores are changes of the target by one step of gradient descent."""

COSINE = replace(
    CHANGE,
    measures=(Measure("score", "cosine"),),
    finding="the gradients of the {count} training texts that it leans on most have a mean cosine of {mean} with that "
    "of the decision",
    reading="Each number is the cosine between the gradients of the decision and of the text, from −1 to 1: without a "
    "supporting text {target} would {lower}, without an opposing one {higher}. It does not say how far.",
)
"""Scores are cosines."""

VOTES = replace(
    CHANGE,
    measures=(Measure("score", "votes without it"),),
    finding="without the {count} training texts that it leans on most, {moved} of the votes of its nearest neighbours "
    "would be lost",
    reading="Each number is how far the share of votes for {asked} among the nearest training texts changes without "
    "that text. It is exact for the vote, which stands beside the model's own answer.",
)
"""Scores are shares of the votes of nearest neighbours."""

PARTS = replace(
    CHANGE,
    measures=(Measure("score", "without its part"),),
    finding="the {count} landmarks that a classifier beside it leans on most make up {moved} of its lead",
    reading="Each number is minus the part that the text has in {target}, as a classifier has it that decides by "
    "likeness to some training texts: without a supporting text it would {lower}, without an opposing one {higher}. "
    "It speaks of that classifier, which learnt to answer as the model does.",
)
"""Scores are parts of the logits of a classifier beside the model."""


def story(answer: Mapping[str, Any]) -> Story:
    """The story that a file holds, with the usual words for what it lacks; older files hold none."""
    own = Story.of(answer["method"].get("story"))
    return replace(
        own,
        measures=own.measures or CHANGE.measures,
        reading=own.reading or CHANGE.reading,
        finding=own.finding or CHANGE.finding,
    )

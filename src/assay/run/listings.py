"""What there is to choose from: names, each with a sentence and with facts in small print."""

from __future__ import annotations

from assay.plugins import all_members
from assay.stories import story_of

Listing = dict[str, tuple[str, str]]


def corpora() -> Listing:
    """Where each corpus is or comes from, its licence and its size."""
    from assay.data.corpora import listing

    rows = listing()
    facts = {row.name: " · ".join(filter(None, (row.size, row.classes, row.licence, row.where))) for row in rows}
    return {row.name: (row.description, facts[row.name]) for row in rows}


def explainers() -> Listing:
    """What a score of each explainer is, and the options that can be changed."""
    from assay.explainers import EXPLAINERS

    return {name: (_first(each.__doc__), _facts(each)) for name, each in all_members(EXPLAINERS, "explainer")}


def audits() -> Listing:
    """The question that each audit answers, and where it was first asked."""
    from assay.audits import AUDITS
    from assay.audits.cases import question

    return {name: (_first(question(each)), _facts(each, each.paper)) for name, each in all_members(AUDITS, "audit")}


def methods() -> Listing:
    """What a score of each method of influence is, and the options that can be changed."""
    from assay.influence import METHODS

    return {name: _told(each) for name, each in all_members(METHODS, "method")}


def recipes() -> Listing:
    """What happens in each recipe of 'assay rationalise', and what it is after."""
    from assay.rationales.recipes import RECIPES
    from assay.rationales.trainers import UNPLAYED

    return {name: _told(each) for name, each in all_members({**RECIPES, **UNPLAYED}, "recipe")}


def _told(member: object) -> tuple[str, str]:
    story = story_of(member)
    cited = [] if story.paper in story.question else [story.paper]
    return story.question, _facts(member, story.title, *cited)


def _facts(instrument: object, *before: str) -> str:
    from assay.explainers.choice import options

    return " · ".join([*before, ", ".join(f"{key}={value}" for key, value in options(instrument).items())]).strip(" ·")


def _first(text: str | None) -> str:
    """The first paragraph on one line."""
    return " ".join((text or "").strip().partition("\n\n")[0].split())

"""What there is to choose from: names, each with a sentence and with facts in small print."""

from __future__ import annotations

from assay.plugins import all_members
from assay.stories import story_of

Listing = dict[str, tuple[str, str]]


def listing(kind: str) -> Listing:
    """All corpora, explainers, audits, methods or recipes: what each is, and the options that can be changed."""
    if kind == "corpora":
        return _corpora()
    if kind == "explainers":
        from assay.explainers import EXPLAINERS

        return {name: (_first(each.__doc__), _facts(each)) for name, each in all_members(EXPLAINERS, "explainer")}
    if kind == "audits":
        from assay.audits import AUDITS
        from assay.audits.cases import question

        return {name: (_first(question(each)), _facts(each, each.paper)) for name, each in all_members(AUDITS, "audit")}
    if kind == "methods":
        from assay.influence import METHODS

        return {name: _of_story(each) for name, each in all_members(METHODS, "method")}
    from assay.rationales.recipes import RECIPES, UNPLAYED

    return {name: _of_story(each) for name, each in all_members({**RECIPES, **UNPLAYED}, "recipe")}


def _corpora() -> Listing:
    """Where each corpus is or comes from, its licence and its size."""
    from assay.data import corpora

    rows = corpora.listing()
    facts = {row.name: " · ".join(filter(None, (row.size, row.classes, row.licence, row.where))) for row in rows}
    return {row.name: (row.description, facts[row.name]) for row in rows}


def _of_story(member: object) -> tuple[str, str]:
    story = story_of(member)
    cited = [] if story.paper in story.question else [story.paper]
    return story.question, _facts(member, story.title, *cited)


def _facts(instrument: object, *before: str) -> str:
    from assay.explainers.choice import options

    return " · ".join([*before, ", ".join(f"{key}={value}" for key, value in options(instrument).items())]).strip(" ·")


def _first(text: str | None) -> str:
    """The first paragraph on one line."""
    return " ".join((text or "").strip().partition("\n\n")[0].split())

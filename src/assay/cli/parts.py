"""From options to what they name: a corpus, a model, a plan, the examples of a split."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.models import GIVEN, HUB, chosen_recipe, kind_of, named
from assay.cli.options import AuditOptions, DataOptions, ModelOptions, TransformerOptions, TreeOptions

if TYPE_CHECKING:
    from assay.data.examples import Corpus, Example
    from assay.models.store import Opened
    from assay.run.plan import AuditPlan


def chosen_corpus(data: DataOptions, seed: int, whole: bool = False) -> Corpus:
    from assay.data.given import corpus

    return corpus(data.corpus, seed, whole=whole, **columns(data))


def columns(data: DataOptions) -> dict[str, Any]:
    """How the texts of a corpus are to be read."""
    return {name: value for name, value in asdict(data).items() if name != "corpus"}


def chosen_plan(options: AuditOptions, phrases: TreeOptions, seed: int) -> AuditPlan:
    from assay.audits import AUDITS, FOUR_TESTS, USUAL_AUDITS
    from assay.explainers import EXPLAINERS, USUAL
    from assay.run.plan import AuditPlan

    return AuditPlan(
        explainers=names(options.explainers, {"all": tuple(EXPLAINERS), "usual": USUAL}),
        audits=names(options.audits, {"all": tuple(AUDITS), "usual": USUAL_AUDITS, "four_tests": FOUR_TESTS}),
        seed=seed,
        limit=options.limit,
        epsilon=options.epsilon,
        tree=phrases.tree,
        scorer=phrases.scorer,
    )


def title(name: str, options: ModelOptions, reading: TransformerOptions, model: str | None, seed: int) -> str:
    """A folder name that tells one run from another."""
    if model is not None and kind_of(model) != "preset":
        place = Path(model.removeprefix(HUB))
        made = place.parent.name if place.name == "model" else place.name
        made += "".join(
            f"-{mark}" for mark in (options.head, "frozen" if options.frozen else None, reading.label) if mark
        )
        made += "-subwords" * reading.subwords
    else:
        options = named(model, options)
        parts = chosen_recipe(options, name).architecture
        shape = "" if parts.shape == "flat" else f"{parts.shape}-"
        made = f"{shape}{parts.encoder}-{parts.alignment}"
        if options.preset != "default":
            own = (options.encoder, options.alignment, options.shape)
            made = options.preset if own == (None, None, None) else f"{made}-{options.preset}"
        made += "".join(_marks(options))
    return re.sub(r"[^\w.-]+", "-", f"{name}-{made}-{seed}")


def _marks(options: ModelOptions) -> Iterator[str]:
    """What tells a model from the preset's, each with a dash before it."""
    told = ("rows", "longest_span", "inner", "concat", "tying", "mlm", "conicity", "diversity", "penalty", "deceive")
    if options.projection is not None:
        yield "-" + re.sub(r"[()\s]", "", options.projection)
    for name in told:
        value = getattr(options, name)
        if value is not None:
            yield f"-{name}" if value is True else f"-{name}{value}"


def home_of(name: str | None, folder: Path) -> Path:
    """Where a model lies, or what was fitted to it: its own folder, or the given one."""
    return Path(name) if name is not None and kind_of(name) in GIVEN and Path(name).is_dir() else folder


def about_corpus(corpus: Corpus, asked: str) -> dict[str, Any]:
    from assay.data.corpora import about

    return about(corpus, asked)


def chosen_examples(corpus: Corpus, split: str, model: Opened) -> tuple[Example, ...]:
    """The examples of a split, with labels counted in the model's classes."""
    from assay.data.matching import examples_for

    return examples_for(corpus, split, model.classes)


def names(text: str, groups: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What is named in a list with commas; the name of a group stands for all in it."""
    from assay.explainers.choice import separated

    return tuple(name for each in separated(text) for name in groups.get(each, (each,)))

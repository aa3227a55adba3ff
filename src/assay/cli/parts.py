"""From options to what they name: a corpus, a model, a plan, the examples of a split."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.options import AuditOptions, DataOptions, ModelOptions
from assay.errors import AssayError

if TYPE_CHECKING:
    from assay.data.examples import Corpus, Example
    from assay.models.recipes import Recipe
    from assay.models.store import Opened, Trained
    from assay.run.plan import AuditPlan


def chosen_corpus(data: DataOptions, seed: int) -> Corpus:
    from assay.data.corpora import corpus
    from assay.data.files import Columns
    from assay.data.subsets import thinned

    names = (data.text_column, data.label_column, data.split_column, data.query_column, data.evidence_column)
    whole = corpus(data.corpus, seed, Columns(*names), data.joined)
    return whole if data.train_limit is None else thinned(whole, data.train_limit, seed)


def named_model(model: str | None, options: ModelOptions) -> tuple[Path | None, ModelOptions]:
    """The folder of a model, or the options with the preset that was named in its place."""
    from assay.models.presets import PRESETS

    if model is None or Path(model).exists() or model not in PRESETS:
        return None if model is None else Path(model), options
    return None, replace(options, preset=model)


def chosen_recipe(options: ModelOptions, corpus: str) -> Recipe:
    """The preset with what was asked for beside it."""
    from assay.run.verbs import recipe

    given = asdict(options)
    for name in ("preset", "seed", "device"):
        del given[name]
    if options.avoid is not None:
        given["avoid"] = tuple(word.strip() for word in options.avoid.split(",") if word.strip())
    return recipe(options.preset, options.seed, corpus, **given)


def given_model(given: Path | None, corpus: Corpus, options: ModelOptions, folder: Path) -> Trained:
    """The model that was given, copied into the folder, or one trained there."""
    from assay.models import recipes, store

    _check_device(options.device)
    if given is None:
        return recipes.train(corpus, chosen_recipe(options, corpus.name), folder, options.device)
    trained = store.load(given, options.device)
    if not (folder / store.CARD).exists():
        store.save(trained, folder)
    return trained


def _check_device(name: str) -> None:
    import torch

    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as fault:
        raise AssayError(f"The device {name!r} cannot be used here; try cpu.") from fault


def chosen_plan(options: AuditOptions, seed: int) -> AuditPlan:
    from assay.audits import AUDITS, FOUR_TESTS, USUAL_AUDITS
    from assay.explainers import EXPLAINERS, USUAL
    from assay.run.plan import AuditPlan

    return AuditPlan(
        explainers=names(options.explainers, {"all": tuple(EXPLAINERS), "usual": USUAL}),
        audits=names(options.audits, {"all": tuple(AUDITS), "usual": USUAL_AUDITS, "four_tests": FOUR_TESTS}),
        seed=seed,
        limit=options.limit,
        epsilon=options.epsilon,
    )


def title(name: str, options: ModelOptions, model: Path | None) -> str:
    """A folder name that tells one run from another."""
    if model is not None:
        made = model.parent.name if model.name == "model" else model.name
    else:
        parts = chosen_recipe(options, name).architecture
        shape = "" if parts.shape == "flat" else f"{parts.shape}-"
        made = f"{shape}{parts.encoder}-{parts.alignment}"
        if options.preset != "default":
            own = (options.encoder, options.alignment, options.shape)
            made = options.preset if own == (None, None, None) else f"{made}-{options.preset}"
        made += "".join(_marks(options))
    return re.sub(r"[^\w.-]+", "-", f"{name}-{made}-{options.seed}")


def _marks(options: ModelOptions) -> Iterator[str]:
    """What tells a model from the preset's, each with a dash before it."""
    told = ("rows", "longest_span", "inner", "concat", "tying", "mlm", "conicity", "diversity", "penalty", "deceive")
    if options.projection is not None:
        yield "-" + re.sub(r"[()\s]", "", options.projection)
    for name in told:
        value = getattr(options, name)
        if value is not None:
            yield f"-{name}" if value is True else f"-{name}{value}"


def about_corpus(corpus: Corpus, asked: str) -> dict[str, Any]:
    from assay.data.corpora import CORPORA

    return {
        "name": corpus.name,
        "licence": CORPORA[asked].licence if asked in CORPORA else None,
        "train": len(corpus.train),
        "dev": len(corpus.dev),
        "test": len(corpus.test),
        "skipped": corpus.skipped,
    }


def chosen_examples(corpus: Corpus, split: str, model: Opened) -> tuple[Example, ...]:
    """The examples of a split, with labels counted in the model's classes."""
    every = corpus.train + corpus.dev + corpus.test
    chosen = every if split == "all" else {"train": corpus.train, "dev": corpus.dev, "test": corpus.test}[split]
    if corpus.classes == model.classes:
        return chosen
    if extra := sorted(set(corpus.classes) - set(model.classes)):
        raise AssayError(
            f"The corpus has the class {extra[0]!r}; the model does not know it, only {', '.join(model.classes)}."
        )
    place = [model.classes.index(name) for name in corpus.classes]
    return tuple(example.relabelled(place) for example in chosen)


def names(text: str, groups: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What is named in a list with commas; the name of a group stands for all in it."""
    from assay.explainers.choice import separated

    return tuple(name for each in separated(text) for name in groups.get(each, (each,)))

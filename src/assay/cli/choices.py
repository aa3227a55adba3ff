"""From options to what they name: a model, a corpus, a plan, the examples of a split."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.options import AuditOptions, DataOptions, ModelOptions, TransformerOptions, TreeOptions
from assay.errors import AssayError

if TYPE_CHECKING:
    from assay.data.examples import Corpus, Example
    from assay.models.hf_loading import Opening
    from assay.models.recipes import Recipe
    from assay.models.store import Opened
    from assay.run.examination import AuditPlan


# From what --model names to a model: a folder of ours, a transformer, a preset to train, an encoder to fine-tune.


HUB = "hf:"
PUBLISHED = re.compile(r"[\w.-]+/[\w.-]+")
SHARED = ("frozen", "epochs", "batch_size", "learning_rate", "head", "preset")
"""What can be said of networks of ours and of transformers alike."""

GIVEN = ("folder", "transformer")
"""The kinds of models that are not trained first."""


def given_model(name: str | None, device: str, reading: TransformerOptions) -> Opened:
    """A model that was trained before."""
    if kind_of(name) not in ("transformer", "encoder"):
        _refuse_reading(reading)
        if not Path(str(name)).exists():
            raise AssayError(f"There is no model folder {name}; a transformer on the hub is named {HUB}NAME.")
        from assay.run.api import stored

        return stored(Path(str(name)), device)
    from assay.models.hf_loading import located, opened

    return opened(located(str(name).removeprefix(HUB)), opening(device, reading))


def trained_model(
    name: str | None,
    corpus: Corpus,
    options: ModelOptions,
    reading: TransformerOptions,
    folder: Path,
    seed: int,
    device: str,
) -> Opened:
    """A model trained on the corpus in the folder: a preset from scratch, or a transformer from where it stands."""
    if kind_of(name) in ("encoder", "transformer"):
        return _finetuned(str(name), corpus, options, reading, folder, seed, device)
    from assay.models import recipes

    _refuse_reading(reading)
    if options.head is not None:
        raise AssayError("--head is for transformers, and this model is none; leave it out.")
    return recipes.train(corpus, chosen_recipe(named(name, options), corpus.name, seed), folder, device)


def keep_copy(model: Opened, folder: Path) -> None:
    """Stores a network of ours in the folder, where it is not yet; transformers are large, and stay where they are."""
    from assay.models import store

    if isinstance(model, store.Trained) and not (folder / store.CARD).exists():
        store.save(model, folder)


def kind_of(name: str | None) -> str:
    """What the name stands for: a "preset" to train, an "encoder", a "folder" of ours, or a "transformer"."""
    from assay.models.hf_loading import ENCODERS, is_folder
    from assay.models.recipes import PRESETS

    if name is None or (name in PRESETS and not Path(name).exists()):
        return "preset"
    if name in ENCODERS and not Path(name).exists():
        return "encoder"
    if name.startswith(HUB) or is_folder(Path(name)):
        return "transformer"
    if Path(name).exists() or not PUBLISHED.fullmatch(name):
        return "folder"
    return "transformer"


def named(name: str | None, options: ModelOptions) -> ModelOptions:
    """The options, with the preset that was named in place of a model."""
    return options if name is None else replace(options, preset=name)


def opening(device: str, reading: TransformerOptions) -> Opening:
    """How a transformer is to be read."""
    from assay.models.hf_loading import Opening

    classes = None if reading.classes is None else tuple(each.strip() for each in reading.classes.split(","))
    return Opening(
        device=device,
        dtype=reading.dtype or "float32",
        words=not reading.subwords,
        truncate=reading.truncate,
        label=reading.label,
        classes=classes,
        compiled=reading.compile,
    )


def chosen_recipe(options: ModelOptions, corpus: str, seed: int = 0) -> Recipe:
    """The preset with what was asked for beside it."""
    from assay.run.api import recipe

    given = asdict(options)
    for name in ("preset", "head"):
        del given[name]
    if options.avoid is not None:
        given["avoid"] = tuple(word.strip() for word in options.avoid.split(",") if word.strip())
    return recipe(options.preset, seed, corpus, **given)


def check_device(name: str, several: bool = False) -> None:
    """Refuses a device that is not there; where there may be several, they have commas between them."""
    import torch

    try:
        for each in name.split(",") if several else [name]:
            torch.zeros(1, device=each.strip()).item()  # a device named meta holds no numbers
    except (RuntimeError, AssertionError) as fault:
        raise AssayError(f"The device {name!r} cannot be used here; try cpu.") from fault


def _finetuned(
    name: str,
    corpus: Corpus,
    options: ModelOptions,
    reading: TransformerOptions,
    folder: Path,
    seed: int,
    device: str,
) -> Opened:
    from assay.models.hf_finetuning import FineTuning, finetune

    if reading.label is not None or reading.classes is not None:
        raise AssayError("The classes are those of the corpus; leave --label and --classes out of training.")
    for each in fields(options):
        if each.name not in SHARED and getattr(options, each.name) is not None:
            option = each.name.replace("_", "-")
            raise AssayError(f"--{option} is for networks that are trained from scratch; leave it out with {name}.")
    usual = FineTuning()
    steps = {step: getattr(options, step) for step in ("epochs", "batch_size", "learning_rate")}
    training = replace(usual.training, seed=seed, **{step: each for step, each in steps.items() if each})
    recipe = FineTuning(
        base=name.removeprefix(HUB),
        head=options.head or usual.head,
        frozen=bool(options.frozen),
        dtype=reading.dtype or usual.dtype,
        training=training,
    )
    return finetune(corpus, recipe, folder, replace(opening(device, reading), dtype="float32"))


def _refuse_reading(reading: TransformerOptions) -> None:
    """Refuses options that mean nothing to a network of ours."""
    usual = TransformerOptions()
    for each in fields(reading):
        if getattr(reading, each.name) != getattr(usual, each.name):
            raise AssayError(f"--{each.name} is for transformers, and this model is none; leave it out.")


# From options to what they name: a corpus, a model, a plan, the examples of a split.


def chosen_corpus(data: DataOptions, seed: int, whole: bool = False) -> Corpus:
    from assay.data.corpora import corpus

    return corpus(data.corpus, seed, whole=whole, **columns(data))


def columns(data: DataOptions) -> dict[str, Any]:
    """How the texts of a corpus are to be read."""
    return {name: value for name, value in asdict(data).items() if name != "corpus"}


def chosen_plan(options: AuditOptions, phrases: TreeOptions, seed: int) -> AuditPlan:
    from assay.audits import AUDITS, FOUR_TESTS, USUAL_AUDITS
    from assay.explainers import EXPLAINERS, USUAL
    from assay.run.examination import AuditPlan

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
    from assay.data.examples import examples_for

    return examples_for(corpus, split, model.classes)


def names(text: str, groups: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What is named in a list with commas; the name of a group stands for all in it."""
    from assay.explainers.choice import separated

    return tuple(name for each in separated(text) for name in groups.get(each, (each,)))

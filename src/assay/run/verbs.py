"""The verbs that make, open and audit models, as functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch

from assay.audits import USUAL_AUDITS
from assay.audits.cases import Audit
from assay.data import corpora, given
from assay.data.examples import Corpus, Example
from assay.data.matching import examples_for
from assay.errors import AssayError, unknown
from assay.explainers import USUAL
from assay.models import recipes, store
from assay.models import recipes as presets
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe
from assay.models.store import Opened, Trained
from assay.models.textmodel import TextModel
from assay.run import audit as auditing
from assay.run.plan import AuditPlan, Instruments
from assay.run.result import Result


def recipe(preset: str = "default", seed: int = 0, corpus: str | None = None, **options: Any) -> Recipe:
    """A preset, suited to the corpus, with other options of Architecture and Training; None leaves one as it is."""
    base = presets.preset(preset, corpus, options.get("encoder"))
    changes = {name: value for name, value in options.items() if value is not None}
    if changes.get("vectors") == "glove":
        changes.setdefault("embedding", 50)
    parts, steps = ({field.name for field in fields(kind)} for kind in (Architecture, Training))
    for name in changes:
        if name not in parts | steps:
            raise unknown("option", name, parts | steps)
    return replace(
        base,
        architecture=replace(base.architecture, **{name: changes[name] for name in changes if name in parts}),
        training=replace(base.training, seed=seed, **{name: changes[name] for name in changes if name in steps}),
    )


def train(
    corpus: Corpus,
    encoder: str | None = None,
    alignment: str | None = None,
    preset: str = "default",
    seed: int = 0,
    out: str | Path | None = None,
    **options: Any,
) -> Trained:
    """A classifier trained on the corpus; with a folder `out` it is stored there, and an interrupted training goes on.

    Encoder and alignment are those of the preset, unless others are named, and so are all other options of
    Architecture and Training, such as projection="sparsemax" or tying=0.5. A corpus of pairs gets a paired model.
    """
    chosen = recipe(preset, seed, corpus.name, encoder=encoder, alignment=alignment, **options)
    return recipes.train(corpus, chosen, None if out is None else Path(out))


def finetune(corpus: Corpus, base: str = "minilm", out: str | Path | None = None, **options: Any) -> Opened:
    """A classifier that starts from a pretrained encoder: minilm, a folder, or a name on the Hugging Face hub.

    The options are those of FineTuning (head, frozen, dtype), of Training (epochs, learning_rate, …) and of Opening
    (device, words, …); with a folder `out` the model is stored there, and an interrupted training goes on.
    """
    from assay.models.hf_finetuning import FineTuning
    from assay.models.hf_finetuning import finetune as tuned
    from assay.models.hf_loading import Opening

    kinds = (FineTuning, Training, Opening)
    known = [{each.name for each in fields(kind)} - {"base", "training"} for kind in kinds]
    for name in options:
        if not any(name in names for names in known):
            raise unknown("option", name, set.union(*known))
    own, steps, read = ({name: options[name] for name in options if name in names} for names in known)
    read.pop("dtype", None)  # that of training; it is read as it was stored
    recipe = FineTuning(base=base, **own)
    recipe = replace(recipe, training=replace(recipe.training, **steps))
    return tuned(corpus, recipe, None if out is None else Path(out), Opening(**read))


def load(name: Any, device: str = "cpu", tokenizer: Any = None, **options: Any) -> Opened:
    """The model in a folder, or a transformer "hf:NAME" on the hub; `options` are those of Opening, for transformers.

    A transformer that is at hand, with its tokenizer, may stand in place of the name: it stays as and where it is.
    """
    if tokenizer is not None:
        return wrap(name, tokenizer, device=device, **options)
    if not isinstance(name, str | Path):
        return opened_model(name)
    from assay.models.hf_loading import is_folder

    published = str(name).startswith("hf:")
    if published or is_folder(Path(name)):
        from assay.models.hf_loading import Opening, opened

        return opened(str(name).removeprefix("hf:"), Opening(device=device, **options))
    if options:
        raise AssayError(f"{name} is no transformer, so {next(iter(options))} means nothing to it.")
    return stored(Path(name), device)


def stored(folder: Path, device: str = "cpu") -> Opened:
    """The model in a folder of ours: a classifier, or one that explains itself."""
    from assay.rationales import rationale_store as storing

    return storing.load(folder, device) if storing.is_folder(folder) else store.load(folder, device)


def wrap(module: Any, tokenizer: Any, classes: Sequence[str] | None = None, **options: Any) -> Opened:
    """A classifier that is at hand, with its tokenizer and other names for its classes; it stays as and where it is.

    The module is one of transformers that classifies texts, or a TextModel of assay with a tokeniser of assay; the
    options are those of Opening.
    """
    if isinstance(module, TextModel):
        return Opened(module.eval(), tokenizer, tuple(classes or map(str, range(module.classes))))
    if not hasattr(module, "config") or not isinstance(module, torch.nn.Module):
        raise AssayError(
            f"{type(module).__name__} is no classifier of transformers; make a subclass of "
            "assay.models.textmodel.TextModel that calls it, and wrap that."
        )
    from assay.models.hf_loading import Opening, wrapped

    named = None if classes is None else tuple(classes)
    return wrapped(module, tokenizer, Opening(classes=named, **options))


def audit(
    model: Any,
    data: Any,
    explainers: Instruments[Any] = USUAL,
    audits: Instruments[Audit] = USUAL_AUDITS,
    seed: int = 0,
    corpus: Any = None,
    limit: int | None = None,
    *,
    split: str = "test",
    epsilon: float = 0.01,
    tree: str | None = None,
    scorer: str | None = None,
    out: str | Path | None = None,
) -> Result:
    """How true the explanations of the model's decisions are, on the test texts of a corpus or on examples.

    The texts are a corpus, by its name, as a file, a table, or a list of examples or (text, label) pairs; its classes
    are matched with the model's by their names. Of all the texts, `limit` are drawn by the seed. Explainers and audits
    are named, or are objects, in a list or by other names in a dict, where arrays of one score a word may stand for an
    explainer. The audits sanity, stability and roar train other models on the corpus: the one that is audited, unless
    another is given. With a folder `out`, the record is written there, and an interrupted audit goes on.
    """
    opened = opened_model(model)
    plan = AuditPlan.of(explainers, audits, seed=seed, limit=limit, epsilon=epsilon, tree=tree, scorer=scorer)
    learnt = None if corpus is None else given.corpus(corpus)
    place = None if out is None else Path(out)
    home = Path(model) if isinstance(model, str | Path) and Path(model).is_dir() else None
    if _are_examples(data):
        return Result(auditing.audit(opened, _some(data), plan, place, corpus=learnt, home=home))
    found = given.corpus(data, seed, whole=isinstance(data, list | tuple) or "corpus" not in opened.history)
    name = str(data) if isinstance(data, str | Path) else found.name
    about = {"corpus": corpora.about(found, name) | {"split": split}}
    examples = _some(examples_for(found, split, opened.classes))
    return Result(auditing.audit(opened, examples, plan, place, about, learnt or found, home))


def opened_model(model: Any) -> Opened:
    """The model that is named, is open already, or is in a pipeline of transformers."""
    if isinstance(model, Opened):
        return model
    if isinstance(model, str | Path):
        return load(model)
    if hasattr(model, "model") and hasattr(model, "tokenizer"):
        return wrap(model.model, model.tokenizer)
    raise AssayError(
        f"A model is a folder, hf:NAME, a pipeline, or what assay.load, train or wrap return, not "
        f"{type(model).__name__}; a module needs its tokenizer: assay.wrap(module, tokenizer, classes)."
    )


def _are_examples(data: Any) -> bool:
    return isinstance(data, list | tuple) and all(isinstance(each, Example) for each in data)


def _some(examples: Sequence[Example]) -> Sequence[Example]:
    if not examples:
        raise AssayError("There are no examples to audit.")
    return examples

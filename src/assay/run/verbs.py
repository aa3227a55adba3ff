"""The verbs of the command line, as functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from assay.audits import USUAL_AUDITS
from assay.data import corpora
from assay.data.examples import Corpus, Example
from assay.data.matching import examples_for
from assay.errors import AssayError, unknown
from assay.explainers import USUAL
from assay.explainers.choice import separated
from assay.models import presets, recipes, store
from assay.models.architecture import Architecture
from assay.models.options import Training
from assay.models.recipes import Recipe
from assay.models.store import Opened, Trained
from assay.run import audit as auditing
from assay.run import explanation
from assay.run.explanation import Explanation
from assay.run.languages import Home
from assay.run.plan import AuditPlan
from assay.run.result import Result
from assay.types import Explainer


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
    folder: str | Path | None = None,
    **options: Any,
) -> Trained:
    """A classifier trained on the corpus; with a folder it is stored there, and an interrupted training goes on.

    Encoder and alignment are those of the preset, unless others are named, and so are all other options of
    Architecture and Training, such as projection="sparsemax" or tying=0.5. A corpus of pairs gets a paired model.
    """
    chosen = recipe(preset, seed, corpus.name, encoder=encoder, alignment=alignment, **options)
    return recipes.train(corpus, chosen, None if folder is None else Path(folder))


def finetune(corpus: Corpus, base: str = "minilm", folder: str | Path | None = None, **options: Any) -> Opened:
    """A classifier that starts from a pretrained encoder: minilm, a folder, or a name on the Hugging Face hub.

    The options are those of FineTuning (head, frozen, dtype), of Training (epochs, learning_rate, …) and of Opening
    (device, words, …); with a folder the model is stored there, and an interrupted training goes on.
    """
    from assay.models.huggingface.finetuning import FineTuning
    from assay.models.huggingface.finetuning import finetune as tuned
    from assay.models.huggingface.opening import Opening

    kinds = (FineTuning, Training, Opening)
    known = [{each.name for each in fields(kind)} - {"base", "training"} for kind in kinds]
    for name in options:
        if not any(name in names for names in known):
            raise unknown("option", name, set.union(*known))
    own, steps, read = ({name: options[name] for name in options if name in names} for names in known)
    read.pop("dtype", None)  # that of training; it is read as it was stored
    recipe = FineTuning(base=base, **own)
    recipe = replace(recipe, training=replace(recipe.training, **steps))
    return tuned(corpus, recipe, None if folder is None else Path(folder), Opening(**read))


def load(name: Any, device: str = "cpu", tokenizer: Any = None, **options: Any) -> Opened:
    """The model in a folder, or a transformer "hf:NAME" on the hub; `options` are those of Opening, for transformers.

    A transformer that is at hand, with its tokenizer, may stand in place of the name: it stays as and where it is.
    """
    from assay.models.huggingface.loading import is_folder

    if tokenizer is not None:
        from assay.models.huggingface.opening import Opening, wrapped

        return wrapped(name, tokenizer, Opening(device=device, **options))

    published = str(name).startswith("hf:")
    if published or is_folder(Path(name)):
        from assay.models.huggingface.opening import Opening, opened

        return opened(str(name).removeprefix("hf:"), Opening(device=device, **options))
    if options:
        raise AssayError(f"{name} is no transformer, so {next(iter(options))} means nothing to it.")
    return stored(Path(name), device)


def stored(folder: Path, device: str = "cpu") -> Opened:
    """The model in a folder of ours: a classifier, or one that explains itself."""
    from assay.rationales import storing

    return storing.load(folder, device) if storing.is_folder(folder) else store.load(folder, device)


def explain(
    model: Opened | str | Path,
    text: str,
    explainers: Sequence[str | Explainer] = USUAL,
    target: str | None = None,
    query: str | None = None,
    tree: str | None = None,
    scorer: str | None = None,
    corpus: Corpus | str | None = None,
) -> Explanation:
    """The model's decision on one text, explained in several ways, for the target class or else the predicted one.

    A model of pairs takes the query as well: the question or hypothesis that the text is read for. Explainers are
    named, or are functions of a model, a batch and the classes to explain. A tree, such as "hedge", "acd" or "soc", is
    a hierarchy of phrases; a scorer says what a phrase counts, such as "shapley". Some of them need the `corpus` that
    the model learnt from, once: what they make of it is kept in the model's folder.
    """
    opened, given = _opened(model), corpora.corpus(corpus) if isinstance(corpus, str) else corpus
    home = Home(_folder(model), None if given is None else lambda: given, given is not None)
    return explanation.explain(
        opened, text, explainers, target=target, query=query, tree=tree, scorer=scorer, home=home
    )


def audit(
    model: Opened | str | Path,
    data: Corpus | Sequence[Example] | str | Path,
    explainers: Sequence[str | Explainer] = USUAL,
    audits: Sequence[str] = USUAL_AUDITS,
    seed: int = 0,
    corpus: Corpus | None = None,
    limit: int | None = None,
) -> Result:
    """How true the explanations of the model's decisions are, on the test texts of a corpus or on examples.

    The corpus may be given by its name or as a file; its classes are matched with the model's by their names. Of all
    the texts, `limit` are drawn by the seed. The audits sanity, stability and roar train other models on the corpus:
    the one that is audited, unless another is given.
    """
    network = _opened(model)
    chosen = tuple(audits) if not isinstance(audits, str) else separated(audits)
    plan = AuditPlan.of(explainers, audits=chosen, seed=seed, limit=limit)
    if isinstance(data, str | Path):
        found = corpora.corpus(str(data), seed, whole="corpus" not in network.history)
    elif isinstance(data, Corpus):
        found = data
    else:
        return Result(auditing.audit(network, _some(data), plan, corpus=corpus))
    about = {"corpus": corpora.about(found, found.name if isinstance(data, Corpus) else str(data)) | {"split": "test"}}
    examples = _some(examples_for(found, "test", network.classes))
    return Result(auditing.audit(network, examples, plan, about=about, corpus=corpus or found))


def _opened(model: Opened | str | Path) -> Opened:
    return load(model) if isinstance(model, str | Path) else model


def _folder(model: Opened | str | Path) -> Path | None:
    """Where a model lies that is named by its folder."""
    return Path(model) if isinstance(model, str | Path) and Path(model).is_dir() else None


def _some(examples: Sequence[Example]) -> Sequence[Example]:
    if not examples:
        raise AssayError("There are no examples to audit.")
    return examples

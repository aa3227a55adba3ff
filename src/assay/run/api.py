"""The verbs that make and open models, the texts that a person gives them, and what there is to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch

from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Corpus, Example, candidates, is_cloze
from assay.errors import AssayError, unknown
from assay.models import recipes, store
from assay.models import recipes as presets
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, fingerprint
from assay.models.store import Opened, Trained
from assay.models.textmodel import TextModel
from assay.plugins import all_members
from assay.stories import story_of


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
    if not (folder / store.SELECTING_CARD).is_file():
        return store.load(folder, device)
    from assay.rationales import rationale_store

    return rationale_store.load(folder, device)


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


# Texts as a person gives them: one in the words that a model reads, or those that a model learnt from.


def read(model: Opened, text: Any, query: str | None) -> Tokenised:
    """The text in word ids; one that the model cannot read is refused in one sentence."""
    text = one_text(text)
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text + (query or "")):  # bytes that were no UTF-8
        raise AssayError("The text is not UTF-8; convert it first.")
    if query is not None and not model.network.paired:
        raise AssayError("This model reads one text; leave the question out.")
    longest = model.tokeniser.options.longest
    rows, skipped = tokenise([_example(text, query, model.classes)], model.tokeniser, longest)
    if not rows:
        (reason,) = skipped
        advice = "give another one, or add --truncate" if "subwords" in reason else "give another one"
        much = reason.replace("more than", "more than the") + " that this model reads" * (reason != "no words")
        raise AssayError(f"The text has {much}; {advice}.")
    return rows[0]


def one_text(text: Any) -> str:
    """The text; several at once, or something else, are refused."""
    if not isinstance(text, str):
        raise AssayError(f"One text at a time, as a str, not {type(text).__name__}; call it for each of several.")
    return text


def _example(text: str, query: str | None, classes: Sequence[str]) -> Example:
    """The text without a known class; of a cloze question, with the entities that it names as candidates."""
    return Example(text, 0, query=query, candidates=candidates(text, classes) if is_cloze(classes) else None)


def check_learnt(model: Opened, corpus: Corpus) -> None:
    """Refuses a corpus that a model which was made here did not learn from; of others it is taken on trust."""
    known = model.history.get("data")
    if known is not None and known != fingerprint((*corpus.train, *corpus.dev)):
        name = model.history.get("corpus", "another corpus")
        raise AssayError(
            f"The model learnt from {name}, and from other texts than these; name the same corpus or file, with "
            "the same --train-limit, --joined, --parted and --seed as in the training."
        )


# What there is to choose from: names, each with a sentence and with facts in small print.


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
    from assay.rationales.recipes import RECIPES
    from assay.rationales.selection_stories import SENTENCES
    from assay.rationales.trainers import UNPLAYED

    selecting = {name: _of_story(each) for name, each in all_members({**RECIPES, **UNPLAYED}, "recipe")}
    return selecting | {name: (each.question, f"{each.title} · {each.paper}") for name, each in SENTENCES.items()}


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

"""The verbs of the command line, as functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from assay.audits import USUAL_AUDITS
from assay.data.examples import Corpus, Example
from assay.errors import AssayError, unknown
from assay.explainers import USUAL
from assay.models import presets, recipes, store
from assay.models.architecture import Architecture
from assay.models.options import Training
from assay.models.recipes import Recipe
from assay.models.store import Opened, Trained
from assay.records import Finding, Record
from assay.run import audit as auditing
from assay.run import explanation
from assay.run.explanation import Explanation
from assay.run.plan import AuditPlan


@dataclass(frozen=True)
class Result:
    """A finished audit: its record, and the ways to look at it."""

    record: Record

    @property
    def findings(self) -> list[Finding]:
        return self.record.findings

    def report(self, path: str | Path) -> Path:
        """Writes the report, one offline HTML file."""
        from assay.report.page import write

        write(self.record, Path(path))
        return Path(path)

    def __str__(self) -> str:
        from assay.report.tables import verdict_table

        console = Console(width=100)
        with console.capture() as capture:
            console.print(verdict_table(self.record))
        return capture.get()


def recipe(preset: str = "default", seed: int = 0, corpus: str | None = None, **options: Any) -> Recipe:
    """A preset, suited to the corpus, with other options of Architecture and Training; None leaves one as it is."""
    base = presets.preset(preset, corpus)
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
    return store.load(Path(name), device)


def explain(
    model: Opened,
    text: str,
    explainers: Sequence[str] = USUAL,
    target: str | None = None,
    query: str | None = None,
) -> Explanation:
    """The model's decision on one text, explained in several ways, for the target class or else the predicted one.

    A model of pairs takes the query as well: the question or hypothesis that the text is read for.
    """
    return explanation.explain(model, text, explainers, target=target, query=query)


def audit(
    model: Opened,
    examples: Sequence[Example],
    explainers: Sequence[str] = USUAL,
    audits: Sequence[str] = USUAL_AUDITS,
    seed: int = 0,
    corpus: Corpus | None = None,
) -> Result:
    """How true the explanations of the model's decisions on these examples are.

    The audits sanity, stability and roar train other models on the corpus, if it is given.
    """
    if not examples:
        raise AssayError("There are no examples to audit.")
    plan = AuditPlan(explainers=tuple(explainers), audits=tuple(audits), seed=seed)
    return Result(auditing.audit(model, examples, plan, corpus=corpus))

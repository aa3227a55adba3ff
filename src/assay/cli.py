"""The command line: the same verbs as the Python functions."""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console
from rich.text import Text

from assay import __version__
from assay.errors import AssayError
from assay.progress import console as aside

if TYPE_CHECKING:
    from assay.data.examples import Corpus, Example
    from assay.models.recipes import Recipe
    from assay.models.store import Trained
    from assay.records import Record
    from assay.run.plan import AuditPlan

app = App(
    name="assay",
    help="Tests whether an explanation of an NLP model is true to the model.",
    version=__version__,
    help_on_error=False,
)
console = Console()
Flat = Parameter(name="*")
NAMES = "Names with commas between them, with options as in 'lime(samples=500)', usual or all; see 'assay explainers'."


@dataclass(frozen=True)
class DataOptions:
    """Where the texts come from."""

    corpus: Annotated[str, Parameter(help="A name from 'assay corpora', or a file of yours.")] = "snippets"
    text_column: Annotated[str, Parameter(help="Column of a file that holds the text.")] = "text"
    label_column: Annotated[str, Parameter(help="Column of a file that holds the class.")] = "label"
    query_column: Annotated[str | None, Parameter(help="Column with the question of each text, '' for none.")] = None
    joined: Annotated[bool, Parameter(negative="", help="Read the question of a pair before its text, as one.")] = False
    split_column: Annotated[str | None, Parameter(help="Column that says train, dev or test.")] = None
    evidence_column: Annotated[str | None, Parameter(help="Column with [start, end] spans of deciding words.")] = None
    train_limit: Annotated[int | None, Parameter(help="Train on this many texts, drawn by the seed.")] = None


@dataclass(frozen=True)
class ModelOptions:
    """What is trained when no --model is given."""

    encoder: Annotated[str | None, Parameter(help="lstm, gru, cnn, conv, average, none or transformer.")] = None
    alignment: Annotated[str | None, Parameter(help="additive or dot.")] = None
    vectors: Annotated[str | None, Parameter(help="random, or glove: 50-d vectors, fetched once.")] = None
    frozen: Annotated[bool | None, Parameter(help="Keep the embeddings as they start.")] = None
    markers: Annotated[bool | None, Parameter(help="Encode a start and an end that are never attended.")] = None
    embedding: Annotated[int | None, Parameter(help="Size of an embedding.")] = None
    hidden: Annotated[int | None, Parameter(help="Half the size of a state.")] = None
    shape: Annotated[str | None, Parameter(help="flat, hierarchical or paired; pairs of texts need no word.")] = None
    preset: Annotated[str, Parameter(help="default, jain-wallace, or {han,flan}-{rnn,conv,none}.")] = "default"
    epochs: Annotated[int | None, Parameter(help="Most epochs of training.")] = None
    seed: Annotated[int, Parameter(help="Decides everything that is random.")] = 0
    device: Annotated[str, Parameter(help="cpu or cuda.")] = "cpu"


@dataclass(frozen=True)
class AuditOptions:
    """What is done to the model."""

    explainers: Annotated[str, Parameter(help=NAMES)] = "usual"
    audits: Annotated[str, Parameter(help="As --explainers; usual trains no other model. See 'assay audits'.")] = (
        "usual"
    )
    split: Annotated[Literal["test", "dev", "train", "all"], Parameter(help="Which texts are audited.")] = "test"
    limit: Annotated[int | None, Parameter(help="Audit this many of them, drawn by the seed.")] = None
    epsilon: Annotated[float, Parameter(help="Change of the output that counts as none.")] = 0.01


@app.command
def audit(
    *,
    data: Annotated[DataOptions, Flat] = DataOptions(),  # noqa: B008
    training: Annotated[ModelOptions, Flat] = ModelOptions(),  # noqa: B008
    options: Annotated[AuditOptions, Flat] = AuditOptions(),  # noqa: B008
    model: Annotated[str | None, Parameter(help="A model folder, or a preset to train, such as han-rnn.")] = None,
    out: Annotated[Path | None, Parameter(help="Folder for the results; an interrupted run goes on there.")] = None,
) -> None:
    """Train or load a model, explain every test example, and test the explanations.

    Leaves a folder with report.html, summary.json, instances.parquet, examples.parquet and the model.
    """
    from assay.run import audit as auditing

    plan = _plan(options, training.seed)
    given, training = _chosen(model, training)
    corpus = _corpus(data, training.seed)
    folder = out or Path("runs") / _title(corpus.name, training, given)
    trained = _model(given, corpus, training, folder / "model")
    about = {
        "command": shlex.join(["assay", *sys.argv[1:]]),
        "corpus": _about(corpus, data.corpus) | {"split": options.split},
    }
    examples = _examples(corpus, options.split, trained)
    _show(auditing.audit(trained, examples, plan, folder, about, corpus), folder)


@app.command
def train(
    *,
    data: Annotated[DataOptions, Flat] = DataOptions(),  # noqa: B008
    training: Annotated[ModelOptions, Flat] = ModelOptions(),  # noqa: B008
    out: Annotated[Path | None, Parameter(help="Folder for the model; an interrupted training goes on there.")] = None,
) -> None:
    """Train an attention classifier and store it."""
    corpus = _corpus(data, training.seed)
    folder = out or Path("runs") / _title(corpus.name, training, None) / "model"
    trained = _model(None, corpus, training, folder)
    best = trained.history["best_dev"]
    console.print(f"Model: {folder} (dev score {best:.3f} in epoch {trained.history['best_epoch']})", soft_wrap=True)


@app.command
def explain(
    text: Annotated[str, Parameter(help="The text to classify and explain.")],
    *,
    query: Annotated[str | None, Parameter(help="The question or hypothesis, for a model of pairs.")] = None,
    model: Annotated[Path, Parameter(help="A model folder, made by 'assay train' or 'assay audit'.")],
    explainers: Annotated[str, Parameter(help=NAMES)] = "usual",
    target: Annotated[str | None, Parameter(help="Class to explain; without it the predicted one.")] = None,
    json_output: Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")] = False,
) -> None:
    """Show which words of a text each explainer holds responsible for the decision."""
    from assay.explainers import EXPLAINERS, USUAL
    from assay.models.store import load
    from assay.run.explanation import explain as explain_text

    names = _names(explainers, EXPLAINERS, USUAL)
    explanation = explain_text(load(model), text, names, target=target, query=query)
    if json_output:
        print(json.dumps(explanation.json(), ensure_ascii=False))
    elif console.is_terminal:
        console.print(explanation)
    else:
        print(explanation)


@app.command
def report(folder: Annotated[Path, Parameter(help="A folder left by 'assay audit'.")]) -> None:
    """Write report.html anew from a finished audit, and show its verdict."""
    from assay.records import Record

    _show(Record.read(folder), folder)


@app.command
def corpora() -> None:
    """List the corpora: where each one is or comes from, its licence and its size."""
    from assay.run import listings

    _list(listings.corpora())


@app.command
def explainers() -> None:
    """List the explainers: what a score is, and the options that can be changed."""
    from assay.run import listings

    _list(listings.explainers())


@app.command
def audits() -> None:
    """List the audits: the question that each answers, and where it was first asked."""
    from assay.run import listings

    _list(listings.audits())


def _list(rows: dict[str, tuple[str, str]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 1, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, (sentence, facts) in rows.items():
        table.add_row(name, Text.assemble(sentence, (f"\n{facts}" if facts else "", "dim")))
    console.print(table)


def _show(record: Record, folder: Path) -> None:
    """Writes the report, and prints its headline and its verdicts."""
    from assay.report.page import write
    from assay.report.tables import leaderboard_table, verdict_table
    from assay.report.verdicts import headline

    write(record, folder / "report.html")
    console.print(f"\n{headline(record)}", style="bold", highlight=False)
    console.print(verdict_table(record))
    if (board := leaderboard_table(record, console.width)) is not None:
        console.print(board)
    console.print(f"Report: {folder / 'report.html'}", soft_wrap=True)


def _corpus(data: DataOptions, seed: int) -> Corpus:
    from assay.data.corpora import corpus
    from assay.data.files import Columns
    from assay.data.subsets import thinned

    names = (data.text_column, data.label_column, data.split_column, data.query_column, data.evidence_column)
    whole = corpus(data.corpus, seed, Columns(*names), data.joined)
    return whole if data.train_limit is None else thinned(whole, data.train_limit, seed)


def _chosen(model: str | None, options: ModelOptions) -> tuple[Path | None, ModelOptions]:
    """The folder of a model, or the options with the preset that was named in its place."""
    from assay.models.presets import PRESETS

    if model is None or Path(model).exists() or model not in PRESETS:
        return None if model is None else Path(model), options
    return None, replace(options, preset=model)


def _recipe(options: ModelOptions, corpus: str) -> Recipe:
    from assay.models.architecture import Architecture
    from assay.run.verbs import recipe

    parts = {field.name for field in fields(Architecture)}
    architecture = {name: value for name, value in asdict(options).items() if name in parts}
    chosen = recipe(options.preset, options.seed, corpus, **architecture)
    if options.epochs is None:
        return chosen
    return replace(chosen, training=replace(chosen.training, epochs=options.epochs))


def _model(given: Path | None, corpus: Corpus, options: ModelOptions, folder: Path) -> Trained:
    """The model that was given, copied into the folder, or one trained there."""
    from assay.models import recipes, store

    _check_device(options.device)
    if given is None:
        return recipes.train(corpus, _recipe(options, corpus.name), folder, options.device)
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


def _plan(options: AuditOptions, seed: int) -> AuditPlan:
    from assay.audits import AUDITS, USUAL_AUDITS
    from assay.explainers import EXPLAINERS, USUAL
    from assay.run.plan import AuditPlan

    return AuditPlan(
        explainers=_names(options.explainers, EXPLAINERS, USUAL),
        audits=_names(options.audits, AUDITS, USUAL_AUDITS),
        seed=seed,
        limit=options.limit,
        epsilon=options.epsilon,
    )


def _title(name: str, options: ModelOptions, model: Path | None) -> str:
    """A folder name that tells one run from another."""
    if model is not None:
        made = model.parent.name if model.name == "model" else model.name
    else:
        parts = _recipe(options, name).architecture
        shape = "" if parts.shape == "flat" else f"{parts.shape}-"
        made = f"{shape}{parts.encoder}-{parts.alignment}"
        if options.preset != "default":
            own = (options.encoder, options.alignment, options.shape)
            made = options.preset if own == (None, None, None) else f"{made}-{options.preset}"
    return f"{name}-{made}-{options.seed}".replace(":", "-")


def _about(corpus: Corpus, asked: str) -> dict[str, Any]:
    from assay.data.corpora import CORPORA

    return {
        "name": corpus.name,
        "licence": CORPORA[asked].licence if asked in CORPORA else None,
        "train": len(corpus.train),
        "dev": len(corpus.dev),
        "test": len(corpus.test),
        "skipped": corpus.skipped,
    }


def _examples(corpus: Corpus, split: str, model: Trained) -> tuple[Example, ...]:
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


def _names(text: str, known: dict[str, Any], usual: tuple[str, ...]) -> tuple[str, ...]:
    from assay.explainers.choice import separated

    return {"all": tuple(known), "usual": usual}.get(text) or separated(text)


def main() -> None:
    """Runs the command line; what a user can mend ends in one sentence and exit code 2."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the same weights on every machine: docs/decisions/0002
    try:
        app(sys.argv[1:], exit_on_error=False, print_error=False)
    except (AssayError, CycloptsError) as fault:
        _fail(str(fault).strip())
    except OSError as fault:
        _fail(_system_fault(fault))
    except KeyboardInterrupt:
        aside.print("Stopped; the same command goes on from here.")
        sys.exit(130)


def _system_fault(fault: OSError) -> str:
    if fault.errno == errno.ENOSPC:
        return "The disk is full: what was there before is untouched; make room and run the same command again."
    return f"{fault.strerror or fault}{f': {fault.filename}' if fault.filename else ''}."


def _fail(sentence: str) -> None:
    aside.print(sentence, style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(2)


if __name__ == "__main__":
    main()

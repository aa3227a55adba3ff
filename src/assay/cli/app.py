"""The command line: the same verbs as the Python functions."""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter
from cyclopts.config import Dict
from rich.console import Console
from rich.text import Text

from assay import __version__
from assay.cli.models import GIVEN, check_device, given_model, keep_copy, kind_of, trained_model
from assay.cli.options import (
    DEVICE,
    MODEL,
    NAMES,
    PLAN,
    START,
    ActOptions,
    AuditOptions,
    DataOptions,
    EngineOptions,
    InfluenceOptions,
    ModelOptions,
    SelectionOptions,
    TrainedOn,
    TransformerOptions,
    TreeOptions,
)
from assay.cli.parts import (
    about_corpus,
    chosen_corpus,
    chosen_examples,
    chosen_plan,
    home_of,
    learnt_corpus,
    names,
    title,
)
from assay.errors import AssayError
from assay.progress import console as aside

app = App(
    name="assay",
    help="Tests whether an explanation of an NLP model is true to the model.",
    version=__version__,
    help_on_error=False,
    suppress_keyboard_interrupt=False,  # `main` says how to go on
)
console = Console()
study = App(name="study")
app.command(study)
Flat = Parameter(name="*")
PLANNED = ("audit", "train")


@app.command
def audit(
    *,
    data: Annotated[DataOptions, Flat] = DataOptions(),  # noqa: B008
    training: Annotated[ModelOptions, Flat] = ModelOptions(),  # noqa: B008
    options: Annotated[AuditOptions, Flat] = AuditOptions(),  # noqa: B008
    phrases: Annotated[TreeOptions, Flat] = TreeOptions(),  # noqa: B008
    reading: Annotated[TransformerOptions, Flat] = TransformerOptions(),  # noqa: B008
    model: Annotated[str | None, Parameter(help=MODEL)] = None,
    out: Annotated[Path | None, Parameter(help="Folder for the results; an interrupted run goes on there.")] = None,
    plan: Annotated[Path | None, Parameter(help=PLAN)] = None,
) -> None:
    """Train or load a model, explain every test example, and test the explanations.

    Leaves a folder with report.html, summary.json, instances.parquet, examples.parquet and the model.
    """
    from assay.cli.reporting import shown
    from assay.run import audit as auditing

    wanted = chosen_plan(options, phrases, training.seed)
    check_device(training.device, several=kind_of(model) != "preset")
    opened = given_model(model, training.device, reading) if kind_of(model) in GIVEN else None
    corpus = chosen_corpus(data, training.seed, whole=opened is not None and "corpus" not in opened.history)
    folder = out or Path("runs") / title(corpus.name, training, reading, model)
    trained = opened or trained_model(model, corpus, training, reading, folder / "model")
    keep_copy(trained, folder / "model")
    about = {
        "command": shlex.join(["assay", *sys.argv[1:]]),
        "corpus": about_corpus(corpus, data.corpus) | {"split": options.split},
    }
    examples = chosen_examples(corpus, options.split, trained)
    home = home_of(model, folder / "model")
    shown(auditing.audit(trained, examples, wanted, folder, about, corpus, home), folder, console)


@app.command
def train(
    *,
    data: Annotated[DataOptions, Flat] = DataOptions(),  # noqa: B008
    training: Annotated[ModelOptions, Flat] = ModelOptions(),  # noqa: B008
    reading: Annotated[TransformerOptions, Flat] = TransformerOptions(),  # noqa: B008
    model: Annotated[str | None, Parameter(help=START)] = None,
    out: Annotated[Path | None, Parameter(help="Folder for the model; an interrupted training goes on there.")] = None,
    plan: Annotated[Path | None, Parameter(help=PLAN)] = None,
) -> None:
    """Train an attention classifier, or fine-tune a transformer, and store it."""
    check_device(training.device, several=kind_of(model) != "preset")
    corpus = chosen_corpus(data, training.seed)
    folder = out or Path("runs") / title(corpus.name, training, reading, model) / "model"
    trained = trained_model(model, corpus, training, reading, folder)
    best = trained.history["best_dev"]
    console.print(f"Model: {folder} (dev score {best:.3f} in epoch {trained.history['best_epoch']})", soft_wrap=True)


@app.command
def explain(
    text: Annotated[str, Parameter(help="The text to classify and explain.")],
    *,
    query: Annotated[str | None, Parameter(help="The question or hypothesis, for a model of pairs.")] = None,
    model: Annotated[str, Parameter(help="A model folder, made by 'assay train' or 'assay audit', or hf:NAME.")],
    reading: Annotated[TransformerOptions, Flat] = TransformerOptions(),  # noqa: B008
    device: Annotated[str, Parameter(help=DEVICE)] = "cpu",
    explainers: Annotated[str, Parameter(help=NAMES)] = "usual",
    target: Annotated[str | None, Parameter(help="Class to explain; without it the predicted one.")] = None,
    phrases: Annotated[TreeOptions, Flat] = TreeOptions(),  # noqa: B008
    data: Annotated[TrainedOn, Flat] = TrainedOn(),  # noqa: B008
    json_output: Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")] = False,
) -> None:
    """Show which words of a text each explainer holds responsible for the decision."""
    from assay.explainers import EXPLAINERS, USUAL
    from assay.run.explanation import explain as explain_text
    from assay.run.languages import Home

    chosen = names(explainers, {"all": tuple(EXPLAINERS), "usual": USUAL})
    check_device(device, several=True)
    opened, tree, scorer = given_model(model, device, reading), phrases.tree, phrases.scorer
    place = home_of(model, Path("runs") / f"language-{Path(model).name}")
    home = Home(place, lambda: learnt_corpus(opened, data), named=data.corpus is not None)
    explanation = explain_text(opened, text, chosen, target=target, query=query, tree=tree, scorer=scorer, home=home)
    if json_output:
        print(json.dumps(explanation.json(), ensure_ascii=False))
    elif console.is_terminal:
        console.print(explanation)
    else:
        print(explanation)


@app.command
def attend(
    text: Annotated[str, Parameter(help="The text to classify.")],
    *,
    query: Annotated[str | None, Parameter(help="The question or hypothesis, for a model of pairs.")] = None,
    model: Annotated[str, Parameter(help="A model folder, made by 'assay train' or 'assay audit', or hf:NAME.")],
    act: Annotated[ActOptions, Flat] = ActOptions(),  # noqa: B008
    reading: Annotated[TransformerOptions, Flat] = TransformerOptions(),  # noqa: B008
    device: Annotated[str, Parameter(help=DEVICE)] = "cpu",
    json_output: Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")] = False,
) -> None:
    """Classify a text under other attention, and show how far the answer moves."""
    from assay.cli.attending import chosen_act, show

    check_device(device, several=True)
    show(given_model(model, device, reading), text, query, chosen_act(act), json_output, console)


@app.command
def influence(
    text: Annotated[str | None, Parameter(help="The text whose decision is traced back.")] = None,
    *,
    query: Annotated[str | None, Parameter(help="The question or hypothesis, for a model of pairs.")] = None,
    model: Annotated[str, Parameter(help="A model folder, made by 'assay train' or 'assay audit', or hf:NAME.")],
    options: Annotated[InfluenceOptions, Flat] = InfluenceOptions(),  # noqa: B008
    data: Annotated[TrainedOn, Flat] = TrainedOn(),  # noqa: B008
    reading: Annotated[TransformerOptions, Flat] = TransformerOptions(),  # noqa: B008
    device: Annotated[str, Parameter(help="cpu or cuda.")] = "cpu",
    seed: Annotated[int | None, Parameter(help="That of the training, where the model does not know it.")] = None,
    out: Annotated[Path | None, Parameter(help="Folder for the page and the numbers.")] = None,
) -> None:
    """Show which training texts made the model decide so, or which of them have a doubtful label.

    Leaves a folder with influence.html and influence.json.
    """
    from assay.cli.influencing import shown_influence

    check_device(device)
    shown_influence(given_model(model, device, reading), model, text, query, data, options, seed, out, console)


@app.command
def rationalise(
    *,
    data: Annotated[DataOptions, Flat] = DataOptions(),  # noqa: B008
    options: Annotated[SelectionOptions, Flat] = SelectionOptions(),  # noqa: B008
    model: Annotated[
        str | None, Parameter(help="A pretrained encoder to start from: minilm, a folder or hf:NAME; else --encoder.")
    ] = None,
    recipes: Annotated[bool, Parameter(negative="", help="List the recipes, and do nothing else.")] = False,
    out: Annotated[
        Path | None, Parameter(help="Folder for the results; an interrupted training goes on there.")
    ] = None,
) -> None:
    """Train a model that selects the words that it decides by, and measure what the selection is worth.

    Leaves a folder with rationales.html, rationales.json and the model, which all other verbs take as --model.
    """
    if recipes:
        from assay.run import listings

        _list(listings.recipes())
        return
    from assay.cli.rationalising import shown_rationales

    check_device(options.device)
    shown_rationales(data, options, model, out, console)


@app.command
def report(
    *folders: Annotated[Path, Parameter(help="Folders left by 'assay audit'; several are put side by side.")],
    form: Annotated[
        Literal["html", "pdf", "md", "json"] | None,
        Parameter(name="--format", help="What to write; without it, what --out ends in, else html."),
    ] = None,
    out: Annotated[Path | None, Parameter(help="The file to write; without it, one beside the audit.")] = None,
) -> None:
    """Write the report of a finished audit, or compare several, and show the verdict."""
    from assay.cli.reporting import chosen_form, compared, reported

    write = compared if len(folders) > 1 else reported
    write(folders, chosen_form(form, out), out, console)


@app.command
def figures(
    folder: Annotated[Path, Parameter(help="A folder left by 'assay audit'.")],
    *,
    form: Annotated[Literal["svg", "png", "pdf"], Parameter(name="--format", help="Kind of file.")] = "svg",
    out: Annotated[Path | None, Parameter(help="Folder for the figures; without it 'figures' in the audit's.")] = None,
) -> None:
    """Write every figure of a finished audit as a file, for papers and slides."""
    from assay.cli.reporting import drawn

    drawn(folder, form, out, console)


@app.command
def serve(
    *folders: Annotated[Path, Parameter(help="Folders with runs; without any, 'runs'.")],
    model: Annotated[list[str] | None, Parameter(help="Model folders or hf:NAME to explain live.")] = None,
    reading: Annotated[TransformerOptions, Flat] = TransformerOptions(),  # noqa: B008
    device: Annotated[str, Parameter(help=DEVICE)] = "cpu",
    host: Annotated[str, Parameter(help="Address to listen at; any but this machine's needs a token.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port to listen at; 0 takes a free one.")] = 8765,
) -> None:
    """Explain texts live, edit attention by hand, browse runs and start audits, in a browser."""
    from assay.cli.serving import served

    check_device(device, several=True)
    served(folders, tuple(model or ()), device, reading, host, port)


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


@app.command
def methods() -> None:
    """List the methods of 'assay influence': what a score is, and the options that can be changed."""
    from assay.run import listings

    _list(listings.methods())


@app.command
def probe(
    *,
    model: Annotated[str, Parameter(help="minilm, or a transformer of Hugging Face (folder or hf:NAME).")],
    sections: Annotated[
        str, Parameter(help="With commas: relations, speech, pairs, coreference, negation, importance, or all.")
    ] = "all",
    limit: Annotated[int | None, Parameter(help="Read this many sentences of each set, drawn by the seed.")] = None,
    corpus: Annotated[str | None, Parameter(help="For importance: the texts that the model classifies.")] = None,
    device: Annotated[str, Parameter(help="cpu or cuda.")] = "cpu",
    seed: Annotated[int, Parameter(help="Decides everything that is random.")] = 0,
    out: Annotated[Path | None, Parameter(help="Folder for the results; an interrupted probe goes on there.")] = None,
) -> None:
    """Test what every attention head attends to, against fixed offsets and random controls.

    Layers and heads are counted from 0. Leaves a folder with probe.html and probe.json.
    """
    from assay.cli.heads import chosen_probe, labelled, show

    check_device(device)
    wanted = chosen_probe(model, sections, limit, corpus, device, seed)
    show(wanted, labelled(corpus, seed), out, shlex.join(["assay", *sys.argv[1:]]), console)


@study.default
def run_study(
    plan: Annotated[Path, Parameter(help="A TOML file with corpora, models, seeds and audits, or a study's folder.")],
    /,
    *,
    options: Annotated[EngineOptions, Flat] = EngineOptions(),  # noqa: B008
    out: Annotated[Path | None, Parameter(help="Folder for the results; without it runs/ and the plan's name.")] = None,
    dry_run: Annotated[bool, Parameter(negative="", help="Show what there is to do, and do nothing.")] = False,
) -> None:
    """Run what is missing of a grid: corpora x models x seeds x audits, and write a table for each question.

    What is done is kept: after a stop, the same command goes on, and several may work in one folder.
    """
    from assay.cli import studying

    if dry_run:
        studying.planned(plan, out, options, console)
    else:
        studying.ran(plan, out, options, console)


@study.command
def status(
    place: Annotated[Path, Parameter(help="The folder of a study, or its plan.")],
    /,
    *,
    out: Annotated[Path | None, Parameter(help="With a plan: its folder, where it is not runs/ and its name.")] = None,
    json_output: Annotated[bool, Parameter(name="--json", negative="", help="Print every trial as JSON.")] = False,
) -> None:
    """Show how far a study is: what is done, failed and why, under way, or missing."""
    from assay.cli import studying

    studying.told(place, out, json_output, console)


@study.command
def retry_failed(
    place: Annotated[Path, Parameter(help="The folder of a study, or its plan.")],
    /,
    *,
    options: Annotated[EngineOptions, Flat] = EngineOptions(),  # noqa: B008
    out: Annotated[Path | None, Parameter(help="With a plan: its folder, where it is not runs/ and its name.")] = None,
) -> None:
    """Run what is missing of a study, and try again what failed."""
    from assay.cli import studying

    studying.ran(place, out, options, console, retry=True)


@study.command
def compare(
    first: Annotated[Path, Parameter(help="The folder of a study.")],
    second: Annotated[Path, Parameter(help="The folder of another study.")],
    /,
) -> None:
    """Compare two studies: whether what both have came out the same, number for number."""
    from assay.cli import studying

    studying.held_together(first, second, console)


def _list(rows: dict[str, tuple[str, str]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 1, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, (sentence, facts) in rows.items():
        table.add_row(name, Text.assemble(sentence, (f"\n{facts}" if facts else "", "dim")))
    console.print(table)


def main() -> None:
    """Runs the command line; what a user can mend ends in one sentence and exit code 2."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the same weights on every machine: docs/decisions/0002
    try:
        app.config = _planned(sys.argv[1:])
        app(sys.argv[1:], exit_on_error=False, print_error=False)
    except (AssayError, CycloptsError) as fault:
        _fail(str(fault).strip())
    except OSError as fault:
        _fail(_system_fault(fault))
    except KeyboardInterrupt:
        aside.print("Stopped; the same command goes on from here.")
        sys.exit(130)


def _planned(words: list[str]) -> tuple[Dict, ...]:
    """The plan that the command line names, to be read before it."""
    for place, word in enumerate(words):
        if word == "--plan" and place + 1 < len(words):
            return (_plan(Path(words[place + 1])),)
        if word.startswith("--plan="):
            return (_plan(Path(word.removeprefix("--plan="))),)
    return ()


def _plan(path: Path) -> Dict:
    """The options in a file, for each verb that takes a plan; a list is what has commas on the command line."""
    if not path.is_file():
        raise AssayError(f"There is no plan {path}; name a TOML file.")
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise AssayError(f"The plan {path} is no TOML file: {fault}.") from fault
    options = {name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in held.items()}
    if any("\x00" in str(value) for value in options.values()):
        raise AssayError(f"The plan {path} holds a character \\0, which is in no name; remove it.")
    # not cyclopts' own reader of TOML: it leaves out what is called like a verb, such as audits
    return Dict(dict.fromkeys(PLANNED, options), source=str(path))


def _system_fault(fault: OSError) -> str:
    if fault.errno == errno.ENOSPC:
        return "The disk is full: what was there before is untouched; make room and run the same command again."
    return f"{fault.strerror or fault}{f': {fault.filename}' if fault.filename else ''}."


def _fail(sentence: str) -> None:
    aside.print(sentence, style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(2)


if __name__ == "__main__":
    main()

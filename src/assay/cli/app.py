"""The command line: the same verbs as the Python functions."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import sys
import tomllib
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError
from cyclopts.config import Dict
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay import __version__
from assay.cli.options import (
    ASK,
    DATA,
    FOLDER,
    GIVEN,
    MODEL,
    OUTPUT,
    SEED,
    TRAINING,
    ActOptions,
    AuditOptions,
    DataOptions,
    EncoderTraining,
    EngineOptions,
    ExplainOptions,
    GivenModel,
    InfluenceOptions,
    Json,
    ModelOptions,
    PresetOptions,
    ProbeOptions,
    Query,
    Reading,
    RepairOptions,
    Results,
    SelectionOptions,
    SelectionTraining,
    TracedModel,
    TracedResults,
    TrainedModel,
    TrainedOn,
    check_device,
    home_of,
    kind_of,
    names,
)
from assay.errors import AssayError
from assay.progress import bar
from assay.progress import console as aside

if TYPE_CHECKING:
    from assay.data.annotated import ExplainedCorpus
    from assay.data.examples import Corpus
    from assay.run.reporting import Report

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
PLANNED = ("audit", "train", "finetune")
VERBS = (
    *("train", "finetune", "audit", "explain", "attend", "influence", "mislabelled", "rationalise", "probe"),
    *("report", "serve", "corpus", "load"),
)
OLD = {"--pieces": "--subwords", "--place": "--position", "--attention-head": "--head"}
"""Options by their names of old, which still work."""

TrainingSeed = Annotated[int, Parameter(help=SEED, group=TRAINING)]
DataSeed = Annotated[int, Parameter(help=SEED, group=DATA)]
LearntSeed = Annotated[
    int | None, Parameter(help="Random seed of the training, where the model does not know it.", group=DATA)
]
Out = Annotated[Path | None, Parameter(help="Folder for the results; an interrupted run goes on there.", group=OUTPUT)]


@app.command
def audit(
    *,
    model: Annotated[
        str | None,
        Parameter(
            help="A model folder, a transformer of Hugging Face (folder or hf:NAME), or what to train first: a preset "
            "such as han-rnn, or minilm.",
            group=MODEL,
        ),
    ] = None,
    reading: Reading = Reading(),
    data: DataOptions = DataOptions(),
    options: AuditOptions = AuditOptions(),
    preset: PresetOptions = PresetOptions(),
    seed: Annotated[int, Parameter(help="Random seed, of the training as well.", group=TRAINING)] = 0,
    results: Results = Results(),
) -> None:
    """Explain every test text of a model, and test the explanations; without --model, a classifier is trained first.

    Leaves a folder with report.html, summary.json, instances.parquet, examples.parquet and the model.
    """
    from assay.data.corpora import about
    from assay.data.examples import examples_for
    from assay.models import store
    from assay.run import reporting
    from assay.run.auditing import audited

    kind = kind_of(model)
    if kind in GIVEN and preset != PresetOptions():
        raise AssayError(f"--preset and --epochs are of a training, and {model} is trained already; leave them out.")
    plan = options.plan(seed)
    check_device(reading.device, several=kind != "preset")
    opened = reading.opened(model) if kind in GIVEN else None
    corpus = data.read(seed, whole=opened is not None and "corpus" not in opened.history)
    start = TrainedModel(model, ModelOptions(**asdict(preset)), reading, seed)
    folder = results.out or Path("runs") / start.title(corpus.name)
    trained = opened or start.trained(corpus, folder / "model")
    if isinstance(trained, store.Trained) and not (folder / "model" / store.CARD).exists():
        store.save(trained, folder / "model")  # transformers are large, and stay where they are
    origin = {"command": _command(), "corpus": about(corpus, data.corpus) | {"split": options.split}}
    examples = examples_for(corpus, options.split, trained.classes)
    record = audited(trained, examples, plan, folder, origin, corpus, home_of(model, folder / "model"))
    show_report(reporting.report(record, out=folder / "report.html"), console)
    whole, part = record.summary.get("seconds"), record.summary["audits"].get("deciding", {}).get("seconds")
    if whole and part:
        _say(f"The verdict took {part:.1f} of {whole:.1f} s ({part / whole:.0%}).")


@app.command
def train(
    *,
    model: Annotated[
        str | None,
        Parameter(help="What to start from: a preset such as han-rnn, minilm, or a transformer.", group=MODEL),
    ] = None,
    reading: Reading = Reading(),
    data: DataOptions = DataOptions(),
    training: ModelOptions = ModelOptions(),
    seed: TrainingSeed = 0,
    results: Results = Results(),
) -> None:
    """Train an attention classifier, or fine-tune a transformer, and store it."""
    check_device(reading.device, several=kind_of(model) != "preset")
    corpus = data.read(seed)
    start = TrainedModel(model, training, reading, seed)
    folder = results.out or Path("runs") / start.title(corpus.name) / "model"
    history = start.trained(corpus, folder).history
    _say(f"Model: {folder} (dev score {history['best_dev']:.3f} in epoch {history['best_epoch']})")


@app.command
def finetune(
    *,
    base: Annotated[str, Parameter(help="A pretrained encoder: minilm, a folder or hf:NAME.", group=MODEL)] = "minilm",
    reading: Reading = Reading(),
    data: DataOptions = DataOptions(),
    training: EncoderTraining = EncoderTraining(),
    seed: TrainingSeed = 0,
    results: Results = Results(),
) -> None:
    """Fine-tune a pretrained encoder to classify the texts of a corpus, and store it: 'assay train --model'."""
    if kind_of(base) not in ("encoder", "transformer"):
        raise AssayError(f"{base} is no pretrained encoder; name minilm, a folder of Hugging Face or hf:NAME.")
    options = ModelOptions(**asdict(training))
    train(model=base, reading=reading, data=data, training=options, seed=seed, results=results)


@app.command
def explain(
    text: Annotated[str, Parameter(help="The text to classify and explain.")],
    *,
    given: GivenModel,
    query: Query = None,
    data: TrainedOn = TrainedOn(),
    options: ExplainOptions = ExplainOptions(),
    json_output: Json = False,
) -> None:
    """Show which words of a text each explainer holds responsible for the decision."""
    from assay.explainers import EXPLAINERS, USUAL
    from assay.run.explaining import Home, explain

    chosen = names(options.explainers, {"all": tuple(EXPLAINERS), "usual": USUAL})
    model = given.opened()
    folder = home_of(given.model, Path("runs") / f"language-{Path(given.model).name}")
    home = Home(folder, partial(data.learnt, model), named=data.corpus is not None)
    made = explain(model, text, chosen, options.target, query, **asdict(options.phrases), home=home)
    if json_output:
        _print_json(made.json())
    else:
        _show(made)


@app.command
def attend(
    text: Annotated[str, Parameter(help="The text to classify.")],
    *,
    given: GivenModel,
    query: Query = None,
    act: ActOptions = ActOptions(),
    json_output: Json = False,
) -> None:
    """Classify a text under other attention, and show how far the answer moves."""
    from assay.run.workbench import attend

    made = attend(given.opened(), text, act.chosen(), query)
    if json_output:
        _print_json(made.answer | {"command": _command()})
    else:
        _show(made)


@app.command
def influence(
    text: Annotated[str | None, Parameter(help="The text whose decision is traced back.")] = None,
    *,
    given: TracedModel,
    query: Query = None,
    data: TrainedOn = TrainedOn(),
    seed: LearntSeed = None,
    options: InfluenceOptions = InfluenceOptions(),
    results: TracedResults = TracedResults(),
) -> None:
    """Show which training texts made the model decide so, and which speak against it.

    Leaves a folder with influence.html and influence.json.
    """
    from assay.run.influencing import influence

    if (text is None) != options.mislabelled:
        raise AssayError(
            "Give a text to ask which training texts decided it, or 'assay mislabelled' to look for wrong labels."
        )
    if text is None:
        if options.check is not None:
            raise AssayError("A check is about the decision on a text; leave --check out, or give a text.")
        asked = RepairOptions(options.method, options.top)
        mislabelled(given=given, data=data, seed=seed, options=asked, results=results)
        return
    model = given.opened()
    wanted = {name: value for name, value in asdict(options).items() if name != "mislabelled" and value is not None}
    _show_traced(influence(model, text, data.learnt(model, seed), query, **wanted).answer, given.model, results)


@app.command
def mislabelled(
    *,
    given: TracedModel,
    data: TrainedOn = TrainedOn(),
    seed: LearntSeed = None,
    options: RepairOptions = RepairOptions(),
    results: TracedResults = TracedResults(),
) -> None:
    """Show which training texts have a doubtful label, and with --fix train the model again with these mended.

    Leaves a folder with influence.html and influence.json.
    """
    from assay.run.influencing import mislabelled

    model = given.opened()
    wanted = {name: value for name, value in asdict(options).items() if value is not None}
    _show_traced(mislabelled(model, data.learnt(model, seed), **wanted).answer, given.model, results)


@app.command
def rationalise(
    *,
    model: Annotated[
        str | None,
        Parameter(help="A pretrained encoder to start from: minilm, a folder or hf:NAME; else --encoder.", group=MODEL),
    ] = None,
    data: DataOptions = DataOptions(),
    options: SelectionOptions = SelectionOptions(),
    training: SelectionTraining = SelectionTraining(),
    recipes: Annotated[bool, Parameter(negative="", help="List the recipes, and do nothing else.", group=ASK)] = False,
    out: Out = None,
) -> None:
    """Train a model that selects the words that it decides by, and measure what the selection is worth.

    Leaves a folder with rationales.html, rationales.json and the model, which all other verbs take as --model. Some
    recipes answer with a sentence that says why instead, and leave sentences.html and sentences.json.
    """
    if recipes:
        _list("recipes")
        return
    from assay.rationales.selection_stories import SENTENCES
    from assay.run import rationalising

    check_device(training.device)
    wanted = asdict(options) | asdict(training) | {"model": model}
    limit = wanted.pop("limit")
    if options.recipe in SENTENCES:
        corpus: Corpus | ExplainedCorpus = data.explained(training.seed)
        start = "gru"
    else:
        base = rationalising.chosen(**wanted).base  # what is wrong in it is said before a corpus is read
        corpus = data.read(training.seed)
        start = Path(base.base).name if hasattr(base, "base") else base.architecture.encoder
    title = [corpus.name, options.recipe, start, *_marks(options), str(training.seed)]
    folder = out or Path("runs") / _name("-".join(title))
    made = rationalising.rationalise(corpus, limit=limit, out=folder, **wanted)
    answer = made.answer | {"command": _command()}
    _show_page(rationalising.page_of(answer), answer, rationalising.write(answer, folder))


def _marks(options: SelectionOptions) -> list[str]:
    """What tells a selection from the usual one."""
    told = ("rate", "width", "reading", "size", "continuity", "concepts", "pairs", "price")
    units = [] if options.units == "token" else [options.units]
    given = ((name, getattr(options, name)) for name in told)
    return units + [f"{name}{value}" for name, value in given if value is not None]


@app.command
def report(
    *folders: Annotated[Path, Parameter(help="Folders left by 'assay audit'; several are compared.")],
    form: Annotated[
        Literal["html", "pdf", "md", "json"] | None,
        Parameter(name="--format", help="Form of the report; without it, what --out ends in, else html.", group=OUTPUT),
    ] = None,
    out: Annotated[
        Path | None, Parameter(help="The file to write; without it, one beside the audit.", group=OUTPUT)
    ] = None,
) -> None:
    """Write the report of a finished audit, or compare several, and show the verdict."""
    from assay.run.reporting import report

    show_report(report(*folders, format=form, out=out), console)


@app.command
def figures(
    folder: Annotated[Path, Parameter(help="A folder left by 'assay audit'.")],
    *,
    form: Annotated[
        Literal["svg", "png", "pdf"], Parameter(name="--format", help="Kind of file.", group=OUTPUT)
    ] = "svg",
    out: Annotated[
        Path | None, Parameter(help="Folder for the figures; without it 'figures' in the audit's.", group=OUTPUT)
    ] = None,
) -> None:
    """Write every figure of a finished audit as a file, for papers and slides."""
    from assay.run.reporting import drawable, opened

    record, place = opened(folder), out or folder / "figures"
    if place.exists() and not place.is_dir():
        raise AssayError(f"{place} is a file; name a folder for the figures.")

    from assay.report.figures import figures, save
    from assay.report.sections import captions

    with drawable(folder):
        found = figures(record)
    if not found:
        raise AssayError(f"{folder} has no figures: none of its audits gave a number that is drawn.")
    place.mkdir(parents=True, exist_ok=True)
    with bar() as progress:
        for name, drawing in progress.track(found.items(), description="drawing"):
            save(drawing, place / f"{name}.{form}")
    told = captions(record)
    table = _table(0)
    for name in found:
        table.add_row(Text(f"{name}.{form}"), Text(told.get(name, "The verdict on each explainer.")))
    console.print(table)
    _say(f"Figures: {place} ({len(found)})")


@app.command
def serve(
    *folders: Annotated[Path, Parameter(help="Folders with runs; without any, 'runs'.")],
    model: Annotated[list[str] | None, Parameter(help="Model folders or hf:NAME to explain live.", group=MODEL)] = None,
    reading: Reading = Reading(),
    host: Annotated[
        str, Parameter(help="Address to listen at; any but this machine's needs a token.", group=OUTPUT)
    ] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port to listen at; 0 takes a free one.", group=OUTPUT)] = 8765,
) -> None:
    """Explain texts live, edit attention by hand, browse runs and start audits, in a browser."""
    from assay.serve import server

    check_device(reading.device, several=True)
    models = {name: reading.opened(name) for name in model or ()}
    server.serve(*folders, model=models, host=host, port=port, options=reading.words())


@app.command
def corpus(
    name: Annotated[str, Parameter(help="Corpus: a name from 'assay corpora', a file of yours, or hf:NAME.")],
    *,
    text_column: Annotated[str, Parameter(help="Column of a file that holds the text.", group=DATA)] = "text",
    label_column: Annotated[str, Parameter(help="Column of a file that holds the class.", group=DATA)] = "label",
    seed: DataSeed = 0,
) -> None:
    """Show what is in a corpus: its classes, the size of its splits, and how many texts were left out."""
    read = DataOptions(name, text_column, label_column).read(seed)
    sizes = ", ".join(f"{split} {len(getattr(read, split)):,}" for split in ("train", "dev", "test"))
    _say(f"{read.name}: {sizes} texts of {len(read.classes)} classes ({', '.join(read.classes[:20])}).")
    for reason, count in read.skipped.items():
        _say(f"Left out: {count:,} ({reason}).")


@app.command
def load(model: Annotated[str, Parameter(help=FOLDER)], *, reading: Reading = Reading()) -> None:
    """Show what a model is: its network, its classes, and what it learnt from, where that is known."""
    opened = GivenModel(model, reading).opened()
    network = opened.network
    _say(f"{network.facts['description']}; {network.parameter_count:,} parameters.")
    _say(f"Classes: {', '.join(opened.classes)}.")
    if "corpus" in opened.history:
        _say(f"Trained on {opened.history['corpus']}.")


@app.command
def corpora() -> None:
    """List the corpora: where each one is or comes from, its licence and its size."""
    _list("corpora")


@app.command
def explainers() -> None:
    """List the explainers: what a score is, and the options that can be changed."""
    _list("explainers")


@app.command
def audits() -> None:
    """List the audits: the question that each answers, and the paper."""
    _list("audits")


@app.command
def methods() -> None:
    """List the methods of 'assay influence': what a score is, and the options that can be changed."""
    _list("methods")


@app.command
def probe(*, options: ProbeOptions, out: Out = None) -> None:
    """Test what every attention head attends to, and whether a class depends on a concept that is given by examples.

    Heads stand beside fixed offsets and random controls, concepts beside random directions. Layers and heads are
    counted from 0. Leaves a folder with probe.html and probe.json.
    """
    from assay.probes import probe_page
    from assay.probes.drawings import PAGE
    from assay.run.probing import labelled, probed

    check_device(options.device)
    concepts = options.concepts()
    plan = options.plan(concepts)
    place = Path(plan.model)
    made = place.parent.name if place.name == "model" else place.name
    about = f"{'concepts' if plan.headless else 'heads'}-{made}-{plan.seed}"
    folder = out or Path("runs") / _name(f"{about}{'' if plan.limit is None else f'-{plan.limit}'}")
    texts = None if plan.corpus is None else partial(labelled, DataOptions(plan.corpus).read(plan.seed))
    answer = probed(plan, folder, texts, _command(), concepts)
    console.print()
    _show_page(probe_page, answer, folder / PAGE)


@study.default
def run_study(
    plan: Annotated[Path, Parameter(help="A TOML file with corpora, models, seeds and audits, or a study's folder.")],
    /,
    *,
    options: EngineOptions = EngineOptions(),
    out: Annotated[Path | None, Parameter(help="Folder for the results; without it runs/ and the plan's name.")] = None,
    dry_run: Annotated[bool, Parameter(negative="", help="Show what there is to do, and do nothing.")] = False,
) -> None:
    """Run what is missing of a grid: corpora x models x seeds x audits, and write a table for each question.

    What is done is kept: after a stop, the same command goes on, and several may work in one folder.
    """
    from assay.cli import studying

    (studying.planned if dry_run else studying.ran)(plan, out, options, console)


@study.command
def status(
    folder: Annotated[Path, Parameter(help="The folder of a study, or its plan.")],
    /,
    *,
    out: Annotated[Path | None, Parameter(help="With a plan: its folder, where it is not runs/ and its name.")] = None,
    json_output: Annotated[bool, Parameter(name="--json", negative="", help="Print every trial as JSON.")] = False,
) -> None:
    """Show how far a study is: what is done, failed and why, under way, or missing."""
    from assay.cli import studying

    studying.told(folder, out, json_output, console)


@study.command
def retry_failed(
    folder: Annotated[Path, Parameter(help="The folder of a study, or its plan.")],
    /,
    *,
    options: EngineOptions = EngineOptions(),
    out: Annotated[Path | None, Parameter(help="With a plan: its folder, where it is not runs/ and its name.")] = None,
) -> None:
    """Run what is missing of a study, and try again what failed."""
    from assay.cli import studying

    studying.ran(folder, out, options, console, retry=True)


@study.command
def compare(
    first: Annotated[Path, Parameter(help="The folder of a study.")],
    second: Annotated[Path, Parameter(help="The folder of another study.")],
    /,
) -> None:
    """Compare two studies: whether what both have came out the same, number for number."""
    from assay.cli import studying

    studying.held_together(first, second, console)


def show_report(made: Report, console: Console) -> None:
    """Prints the outcome of audits, and where the report lies."""
    console.print()
    for line in made.lines(console.width):
        console.print(line, highlight=False, markup=False)
    kind = "Report" if made.record is not None else "Comparison"
    console.print(f"{kind}: {made.path}", soft_wrap=True, markup=False, highlight=False)


def _command() -> str:
    """The command line as it was given."""
    return shlex.join(["assay", *sys.argv[1:]])


def _name(words: str) -> str:
    """A name for a folder."""
    return re.sub(r"[^\w.-]+", "-", words)


def _show_traced(answer: dict[str, Any], model: str, results: TracedResults) -> None:
    """Writes the page and the numbers of what was found among training texts, and prints the finding."""
    from assay.files import write_text
    from assay.influence import page
    from assay.run.influencing import FILE, PAGE

    answer = answer | {"command": _command()}
    if results.json_output:
        _print_json(answer)
        return
    folder = results.out or Path("runs") / _name(f"influence-{Path(model).parent.name or model}")
    write_text(folder / FILE, json.dumps(answer, ensure_ascii=False, allow_nan=False) + "\n")
    _show_page(page, answer, folder / PAGE)


def _show_page(page: ModuleType, answer: dict[str, Any], path: Path) -> None:
    """Writes the page of an answer, and prints its finding."""
    from assay.report.console import shown
    from assay.report.save import save

    save(page.document(answer), path)
    for block in shown(page.brief(answer)):
        console.print(block, soft_wrap=isinstance(block, Text))
    _say(f"Page: {path}")


def _show(made: object) -> None:
    """Prints a result with colours where there are any, else as a table."""
    if console.is_terminal:
        console.print(made)
    else:
        print(made)


def _print_json(answer: dict[str, Any]) -> None:
    print(json.dumps(answer, ensure_ascii=False))


def _say(sentence: str) -> None:
    console.print(sentence, soft_wrap=True, markup=False, highlight=False)


def _table(below: int) -> Table:
    """Names and what they are, with so many blank lines below each."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, below, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    return table


def _list(kind: str) -> None:
    """Prints what there is to choose from."""
    from assay.run.api import listing

    table = _table(1)
    for name, (sentence, facts) in listing(kind).items():
        table.add_row(name, Text.assemble(sentence, (f"\n{facts}" if facts else "", "dim")))
    console.print(table)


def main() -> None:
    """Runs the command line; what a user can mend ends in one sentence and exit code 2."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the same weights on every machine: docs/decisions/0002
    try:
        words = _renamed(sys.argv[1:])
        app.config = _planned(words)
        app(words, exit_on_error=False, print_error=False)
    except UnknownOptionError as fault:
        _fail(_elsewhere(fault) or str(fault).strip())
    except (AssayError, CycloptsError) as fault:
        _fail(str(fault).strip())
    except OSError as fault:
        _fail(_system_fault(fault))
    except KeyboardInterrupt:
        aside.print("Stopped; the same command goes on from here.")
        sys.exit(130)


def _renamed(words: list[str]) -> list[str]:
    """The words of the command line, with options of old by the names that they have now."""
    end = words.index("--") if "--" in words else len(words)
    pairs = [word.partition("=") for word in words[:end]]
    return ["".join((OLD.get(name, name), *rest)) for name, *rest in pairs] + words[end:]


def _elsewhere(fault: UnknownOptionError) -> str | None:
    """Which verbs have an option that the verb at hand does not have; None where no verb has it."""
    name = (fault.token.keyword or fault.token.value).partition("=")[0].strip("-[]")  # of a plan it is [name]
    option = f"--{name.replace('_', '-')}"
    verb = (fault.command_chain or ("",))[0]
    verbs = [name for name in VERBS if name != verb and option in _options(name)]
    if not verbs:
        return None
    having = " and ".join(f"'assay {name}'" for name in verbs[:3])
    advice = "; train the model first, and give it as --model" if "train" in verbs and verb != "train" else ""
    source = "" if fault.token.source == "cli" else f" (from {fault.token.source})"
    return f"{option}{source} is an option of {having}, not of 'assay {verb}'{advice}."


def _options(verb: str) -> set[str]:
    """The names of the options of a verb."""
    return {name for each in app[verb].assemble_argument_collection() for name in each.names}


def _planned(words: list[str]) -> tuple[Dict, ...]:
    """The plan that the command line names, to be read before it."""
    for number, word in enumerate(words):
        if word == "--plan" and number + 1 < len(words):
            return (_plan(Path(words[number + 1])),)
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
    held = {OLD.get(f"--{name}", name).lstrip("-"): value for name, value in held.items()}
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

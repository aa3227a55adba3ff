"""The command line: the same verbs as the Python functions."""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError
from cyclopts.config import Dict
from rich.console import Console
from rich.text import Text

from assay import __version__
from assay.cli.choices import (
    GIVEN,
    about_corpus,
    check_device,
    chosen_corpus,
    chosen_examples,
    chosen_plan,
    columns,
    given_model,
    home_of,
    keep_copy,
    kind_of,
    names,
    title,
    trained_model,
)
from assay.cli.options import (
    ASK,
    DATA,
    ENGINE,
    FOLDER,
    MODEL,
    NAMES,
    OUTPUT,
    SEED,
    TRAINING,
    ActOptions,
    AuditOptions,
    DataOptions,
    Device,
    EngineOptions,
    Flat,
    Given,
    InfluenceOptions,
    Json,
    ModelOptions,
    OneDevice,
    Out,
    Plan,
    PresetOptions,
    Query,
    SelectionOptions,
    SuspectOptions,
    TrainedOn,
    TransformerOptions,
    TreeOptions,
)
from assay.errors import AssayError
from assay.progress import console as aside

if TYPE_CHECKING:
    from assay.data.examples import Corpus
    from assay.models.store import Opened

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
    device: Device = "cpu",
    reading: Annotated[TransformerOptions, Flat, Parameter(group=MODEL)] = TransformerOptions(),  # noqa: B008
    data: Annotated[DataOptions, Flat, Parameter(group=DATA)] = DataOptions(),  # noqa: B008
    options: Annotated[AuditOptions, Flat, Parameter(group=ASK)] = AuditOptions(),  # noqa: B008
    phrases: Annotated[TreeOptions, Flat, Parameter(group=ASK)] = TreeOptions(),  # noqa: B008
    preset: Annotated[PresetOptions, Flat, Parameter(group=TRAINING)] = PresetOptions(),  # noqa: B008
    seed: Annotated[int, Parameter(help="Random seed, of the training as well.", group=TRAINING)] = 0,
    out: Out = None,
    plan: Plan = None,
) -> None:
    """Explain every test text of a model, and test the explanations; without --model, a classifier is trained first.

    Leaves a folder with report.html, summary.json, instances.parquet, examples.parquet and the model.
    """
    from assay.cli.reporting import shown
    from assay.run import auditing

    training = ModelOptions(preset.preset, preset.epochs)
    if kind_of(model) in GIVEN and preset != PresetOptions():
        raise AssayError(f"--preset and --epochs are of a training, and {model} is trained already; leave them out.")
    wanted = chosen_plan(options, phrases, seed)
    check_device(device, several=kind_of(model) != "preset")
    opened = given_model(model, device, reading) if kind_of(model) in GIVEN else None
    corpus = chosen_corpus(data, seed, whole=opened is not None and "corpus" not in opened.history)
    folder = out or Path("runs") / title(corpus.name, training, reading, model, seed)
    trained = opened or trained_model(model, corpus, training, reading, folder / "model", seed, device)
    keep_copy(trained, folder / "model")
    about = {
        "command": shlex.join(["assay", *sys.argv[1:]]),
        "corpus": about_corpus(corpus, data.corpus) | {"split": options.split},
    }
    examples = chosen_examples(corpus, options.split, trained)
    home = home_of(model, folder / "model")
    shown(auditing.audited(trained, examples, wanted, folder, about, corpus, home), folder, console)


@app.command
def train(
    *,
    model: Annotated[
        str | None,
        Parameter(help="What to start from: a preset such as han-rnn, minilm, or a transformer.", group=MODEL),
    ] = None,
    device: Device = "cpu",
    reading: Annotated[TransformerOptions, Flat, Parameter(group=MODEL)] = TransformerOptions(),  # noqa: B008
    data: Annotated[DataOptions, Flat, Parameter(group=DATA)] = DataOptions(),  # noqa: B008
    training: Annotated[ModelOptions, Flat, Parameter(group=TRAINING)] = ModelOptions(),  # noqa: B008
    seed: Annotated[int, Parameter(help=SEED, group=TRAINING)] = 0,
    out: Out = None,
    plan: Plan = None,
) -> None:
    """Train an attention classifier, or fine-tune a transformer, and store it."""
    check_device(device, several=kind_of(model) != "preset")
    corpus = chosen_corpus(data, seed)
    folder = out or Path("runs") / title(corpus.name, training, reading, model, seed) / "model"
    trained = trained_model(model, corpus, training, reading, folder, seed, device)
    best = trained.history["best_dev"]
    console.print(f"Model: {folder} (dev score {best:.3f} in epoch {trained.history['best_epoch']})", soft_wrap=True)


@app.command
def finetune(
    *,
    base: Annotated[str, Parameter(help="A pretrained encoder: minilm, a folder or hf:NAME.", group=MODEL)] = "minilm",
    device: Device = "cpu",
    reading: Annotated[TransformerOptions, Flat, Parameter(group=MODEL)] = TransformerOptions(),  # noqa: B008
    data: Annotated[DataOptions, Flat, Parameter(group=DATA)] = DataOptions(),  # noqa: B008
    head: Annotated[
        str | None,
        Parameter(
            help="Classification head: own, or attention (a pooling head, needed for exact attention tests).",
            group=TRAINING,
        ),
    ] = None,
    frozen: Annotated[bool | None, Parameter(help="Do not train the pretrained encoder.", group=TRAINING)] = None,
    epochs: Annotated[int | None, Parameter(help="Epochs of training.", group=TRAINING)] = None,
    batch_size: Annotated[int | None, Parameter(help="Texts in one step of training.", group=TRAINING)] = None,
    learning_rate: Annotated[float | None, Parameter(help="Learning rate.", group=TRAINING)] = None,
    seed: Annotated[int, Parameter(help=SEED, group=TRAINING)] = 0,
    out: Out = None,
    plan: Plan = None,
) -> None:
    """Fine-tune a pretrained encoder to classify the texts of a corpus, and store it: 'assay train --model'."""
    if kind_of(base) not in ("encoder", "transformer"):
        raise AssayError(f"{base} is no pretrained encoder; name minilm, a folder of Hugging Face or hf:NAME.")
    options = ModelOptions(epochs=epochs, frozen=frozen, head=head, batch_size=batch_size, learning_rate=learning_rate)
    train(model=base, device=device, reading=reading, data=data, training=options, seed=seed, out=out)


@app.command
def explain(
    text: Annotated[str, Parameter(help="The text to classify and explain.")],
    *,
    model: Given,
    device: Device = "cpu",
    reading: Annotated[TransformerOptions, Flat, Parameter(group=MODEL)] = TransformerOptions(),  # noqa: B008
    query: Query = None,
    data: Annotated[TrainedOn, Flat, Parameter(group=DATA)] = TrainedOn(),  # noqa: B008
    explainers: Annotated[str, Parameter(help=NAMES, group=ASK)] = "usual",
    target: Annotated[str | None, Parameter(help="Class to explain; without it the predicted one.", group=ASK)] = None,
    phrases: Annotated[TreeOptions, Flat, Parameter(group=ASK)] = TreeOptions(),  # noqa: B008
    json_output: Json = False,
) -> None:
    """Show which words of a text each explainer holds responsible for the decision."""
    from assay.explainers import EXPLAINERS, USUAL
    from assay.run import explaining as explanation
    from assay.run.explaining import Home

    chosen = names(explainers, {"all": tuple(EXPLAINERS), "usual": USUAL})
    check_device(device, several=True)
    opened = given_model(model, device, reading)
    folder = home_of(model, Path("runs") / f"language-{Path(model).name}")
    home = Home(folder, lambda: _learnt(opened, data, None), named=data.corpus is not None)
    made = explanation.explain(opened, text, chosen, target, query, phrases.tree, phrases.scorer, home=home)
    if json_output:
        print(json.dumps(made.json(), ensure_ascii=False))
    else:
        _show(made)


@app.command
def attend(
    text: Annotated[str, Parameter(help="The text to classify.")],
    *,
    model: Given,
    device: Device = "cpu",
    reading: Annotated[TransformerOptions, Flat, Parameter(group=MODEL)] = TransformerOptions(),  # noqa: B008
    query: Query = None,
    act: Annotated[ActOptions, Flat, Parameter(group=ASK)] = ActOptions(),  # noqa: B008
    json_output: Json = False,
) -> None:
    """Classify a text under other attention, and show how far the answer moves."""
    from assay.cli.attending import chosen_act
    from assay.run import workbench

    check_device(device, several=True)
    made = workbench.attend(given_model(model, device, reading), text, chosen_act(act), query)
    if json_output:
        print(json.dumps(made.answer | {"command": shlex.join(["assay", *sys.argv[1:]])}, ensure_ascii=False))
    else:
        _show(made)


@app.command
def influence(
    text: Annotated[str | None, Parameter(help="The text whose decision is traced back.")] = None,
    *,
    model: Given,
    device: OneDevice = "cpu",
    reading: Annotated[TransformerOptions, Flat, Parameter(group=MODEL)] = TransformerOptions(),  # noqa: B008
    query: Query = None,
    data: Annotated[TrainedOn, Flat, Parameter(group=DATA)] = TrainedOn(),  # noqa: B008
    seed: Annotated[
        int | None, Parameter(help="Random seed of the training, where the model does not know it.", group=DATA)
    ] = None,
    options: Annotated[InfluenceOptions, Flat, Parameter(group=ASK)] = InfluenceOptions(),  # noqa: B008
    json_output: Annotated[
        bool, Parameter(name="--json", negative="", help="Print JSON, and write nothing.", group=OUTPUT)
    ] = False,
    out: Annotated[Path | None, Parameter(help="Folder for the page and the numbers.", group=OUTPUT)] = None,
) -> None:
    """Show which training texts made the model decide so, and which speak against it.

    Leaves a folder with influence.html and influence.json.
    """
    from assay.cli.influencing import checked, show, traced

    checked(text, options)
    check_device(device)
    opened = given_model(model, device, reading)
    made = traced(opened, text, query, _learnt(opened, data, seed), options)
    show(made, model, out, json_output, console)


@app.command
def mislabelled(
    *,
    model: Given,
    device: OneDevice = "cpu",
    reading: Annotated[TransformerOptions, Flat, Parameter(group=MODEL)] = TransformerOptions(),  # noqa: B008
    data: Annotated[TrainedOn, Flat, Parameter(group=DATA)] = TrainedOn(),  # noqa: B008
    seed: Annotated[
        int | None, Parameter(help="Random seed of the training, where the model does not know it.", group=DATA)
    ] = None,
    options: Annotated[SuspectOptions, Flat, Parameter(group=ASK)] = SuspectOptions(),  # noqa: B008
    json_output: Annotated[
        bool, Parameter(name="--json", negative="", help="Print JSON, and write nothing.", group=OUTPUT)
    ] = False,
    out: Annotated[Path | None, Parameter(help="Folder for the page and the numbers.", group=OUTPUT)] = None,
) -> None:
    """Show which training texts have a doubtful label.

    Leaves a folder with influence.html and influence.json.
    """
    wanted = InfluenceOptions(options.method, options.top, mislabelled=True)
    influence(
        None,
        model=model,
        device=device,
        reading=reading,
        data=data,
        seed=seed,
        options=wanted,
        json_output=json_output,
        out=out,
    )


@app.command
def rationalise(
    *,
    model: Annotated[
        str | None,
        Parameter(help="A pretrained encoder to start from: minilm, a folder or hf:NAME; else --encoder.", group=MODEL),
    ] = None,
    data: Annotated[DataOptions, Flat, Parameter(group=DATA)] = DataOptions(),  # noqa: B008
    options: Annotated[SelectionOptions, Flat, Parameter(group=TRAINING)] = SelectionOptions(),  # noqa: B008
    recipes: Annotated[bool, Parameter(negative="", help="List the recipes, and do nothing else.", group=ASK)] = False,
    out: Out = None,
) -> None:
    """Train a model that selects the words that it decides by, and measure what the selection is worth.

    Leaves a folder with rationales.html, rationales.json and the model, which all other verbs take as --model.
    """
    if recipes:
        from assay.run.api import listing

        _list(listing("recipes"))
        return
    from assay.cli.rationalising import shown_rationales

    check_device(options.device)
    shown_rationales(data, options, model, out, console)


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
    from assay.cli.reporting import reported

    reported(folders, form, out, console)


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
    from assay.cli.reporting import drawn

    drawn(folder, form, out, console)


@app.command
def serve(
    *folders: Annotated[Path, Parameter(help="Folders with runs; without any, 'runs'.")],
    model: Annotated[list[str] | None, Parameter(help="Model folders or hf:NAME to explain live.", group=MODEL)] = None,
    device: Device = "cpu",
    reading: Annotated[TransformerOptions, Flat, Parameter(group=MODEL)] = TransformerOptions(),  # noqa: B008
    host: Annotated[
        str, Parameter(help="Address to listen at; any but this machine's needs a token.", group=OUTPUT)
    ] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port to listen at; 0 takes a free one.", group=OUTPUT)] = 8765,
) -> None:
    """Explain texts live, edit attention by hand, browse runs and start audits, in a browser."""
    from assay.cli.attending import reading_options
    from assay.serve import server

    check_device(device, several=True)
    opened = {name: given_model(name, device, reading) for name in model or ()}
    server.serve(*folders, model=opened, host=host, port=port, options=reading_options(device, reading))


@app.command
def corpus(
    name: Annotated[str, Parameter(help="Corpus: a name from 'assay corpora', a file of yours, or hf:NAME.")],
    *,
    text_column: Annotated[str, Parameter(help="Column of a file that holds the text.", group=DATA)] = "text",
    label_column: Annotated[str, Parameter(help="Column of a file that holds the class.", group=DATA)] = "label",
    seed: Annotated[int, Parameter(help=SEED, group=DATA)] = 0,
) -> None:
    """Show what is in a corpus: its classes, the size of its splits, and how many texts were left out."""
    data = DataOptions(name, text_column, label_column)
    read = chosen_corpus(data, seed)
    sizes = ", ".join(f"{split} {len(getattr(read, split)):,}" for split in ("train", "dev", "test"))
    _say(f"{read.name}: {sizes} texts of {len(read.classes)} classes ({', '.join(read.classes[:20])}).")
    for reason, count in read.skipped.items():
        _say(f"Left out: {count:,} ({reason}).")


@app.command
def load(
    model: Annotated[str, Parameter(help=FOLDER)],
    *,
    device: Device = "cpu",
    reading: Annotated[TransformerOptions, Flat, Parameter(group=MODEL)] = TransformerOptions(),  # noqa: B008
) -> None:
    """Show what a model is: its network, its classes, and what it learnt from, where that is known."""
    check_device(device, several=True)
    opened = given_model(model, device, reading)
    network = opened.network
    _say(f"{network.facts['description']}; {network.parameter_count:,} parameters.")
    _say(f"Classes: {', '.join(opened.classes)}.")
    if "corpus" in opened.history:
        _say(f"Trained on {opened.history['corpus']}.")


@app.command
def corpora() -> None:
    """List the corpora: where each one is or comes from, its licence and its size."""
    from assay.run.api import listing

    _list(listing("corpora"))


@app.command
def explainers() -> None:
    """List the explainers: what a score is, and the options that can be changed."""
    from assay.run.api import listing

    _list(listing("explainers"))


@app.command
def audits() -> None:
    """List the audits: the question that each answers, and the paper."""
    from assay.run.api import listing

    _list(listing("audits"))


@app.command
def methods() -> None:
    """List the methods of 'assay influence': what a score is, and the options that can be changed."""
    from assay.run.api import listing

    _list(listing("methods"))


@app.command
def probe(
    *,
    model: Annotated[
        str, Parameter(help="Transformer to probe: minilm, or one of Hugging Face (folder or hf:NAME).", group=MODEL)
    ],
    device: OneDevice = "cpu",
    sections: Annotated[
        str,
        Parameter(
            help="Sections of the probe, separated by commas: relations, speech, pairs, "
            "coreference, negation, importance, or all.",
            group=ASK,
        ),
    ] = "all",
    limit: Annotated[
        int | None, Parameter(help="Number of sentences of each set, drawn by the seed; without it all.", group=DATA)
    ] = None,
    corpus: Annotated[
        str | None, Parameter(help="Corpus that the model classifies, for the section importance.", group=DATA)
    ] = None,
    seed: Annotated[int, Parameter(help=SEED, group=DATA)] = 0,
    out: Out = None,
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
    options: Annotated[EngineOptions, Flat, Parameter(group=ENGINE)] = EngineOptions(),  # noqa: B008
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
    options: Annotated[EngineOptions, Flat, Parameter(group=ENGINE)] = EngineOptions(),  # noqa: B008
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


def _learnt(model: Opened, data: TrainedOn, seed: int | None) -> Corpus:
    """The corpus that a model learnt from: the one that is named, or the one that its card names."""
    from assay.run.influencing import learnt_corpus

    return learnt_corpus(model, data.corpus, seed, **columns(data))


def _show(made: object) -> None:
    """Prints a result with colours where there are any, else as a table."""
    if console.is_terminal:
        console.print(made)
    else:
        print(made)


def _say(sentence: str) -> None:
    console.print(sentence, soft_wrap=True, markup=False, highlight=False)


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

"""The options of the command line as frozen objects by what they are about, and what each one stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from cyclopts import Group, Parameter

from assay.errors import AssayError

if TYPE_CHECKING:
    from assay.data.annotated import ExplainedCorpus
    from assay.data.examples import Corpus
    from assay.intervene.edits import Act
    from assay.models.hf_loading import Opening
    from assay.models.recipes import Recipe
    from assay.models.store import Opened
    from assay.run.examination import AuditPlan
    from assay.run.probing import ProbePlan

MODEL = Group("Model", sort_key=1)
DATA = Group("Data", sort_key=2)
ASK = Group("What to ask", sort_key=3)
TRAINING = Group("Training", sort_key=4)
ENGINE = Group("Engine", sort_key=5)
OUTPUT = Group("Output", sort_key=6)

NAMES = (
    "Explainers, separated by commas: names from 'assay explainers', with "
    "options as in 'lime(samples=500)'; usual; or all."
)
ENCODERS = "Encoder: lstm, gru, cnn, conv, average, none or transformer; without it that of the preset."
VECTORS = "Word vectors to start from: random, or glove (50 dimensions, downloaded once)."
FOLDER = "A model folder, made by 'assay train' or 'assay audit', or hf:NAME."
SEED = "Random seed."

Switch = Annotated[bool, Parameter(negative="")]
Query = Annotated[
    str | None, Parameter(help="Question or hypothesis that goes with the text, for a model of pairs.", group=DATA)
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.", group=OUTPUT)]
Corpora = Parameter(name=["--corpus", "--data"])

HUB = "hf:"
PUBLISHED = re.compile(r"[\w.-]+/[\w.-]+")
SHARED = ("frozen", "epochs", "batch_size", "learning_rate", "head", "preset")
"""What can be said of networks of ours and of transformers alike."""

GIVEN = ("folder", "transformer")
"""The kinds of models that are not trained first."""


def names(text: str, groups: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What is named in a list with commas; the name of a group stands for all in it."""
    from assay.explainers.choice import separated

    return tuple(name for each in separated(text) for name in groups.get(each, (each,)))


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


def check_device(name: str, several: bool = False) -> None:
    """Refuses a device that is not there; where there may be several, they have commas between them."""
    import torch

    try:
        for each in name.split(",") if several else [name]:
            torch.zeros(1, device=each.strip()).item()  # a device named meta holds no numbers
    except (RuntimeError, AssertionError) as fault:
        raise AssayError(f"The device {name!r} cannot be used here; try cpu.") from fault


def changed(options: Any) -> dict[str, Any]:
    """The options that are not as usual."""
    usual = type(options)()
    every = ((each.name, getattr(options, each.name)) for each in fields(options))
    return {name: value for name, value in every if value != getattr(usual, name)}


@Parameter(name="*", group=DATA)
@dataclass(frozen=True)
class DataOptions:
    """Where the texts come from."""

    corpus: Annotated[str, Corpora] = "snippets"
    """Corpus: a name from 'assay corpora', a file of yours, or hf:NAME."""
    text_column: str = "text"
    """Column of a file that holds the text."""
    label_column: str = "label"
    """Column of a file that holds the class."""
    query_column: str | None = None
    """Column that holds the question of each text; '' for none."""
    joined: Switch = False
    """Join the question of a pair and its text into one text."""
    parted: Switch = False
    """Take the second line of a text as its question."""
    split_column: str | None = None
    """Column that holds the split: train, dev or test."""
    evidence_column: str | None = None
    """Column that holds [start, end] spans of the deciding words."""
    train_limit: int | None = None
    """Number of training texts, drawn by the seed."""

    def read(self, seed: int, whole: bool = False) -> Corpus:
        """The corpus; or all texts of a file as test texts, where it is `whole`."""
        from assay.data.corpora import corpus

        return corpus(self.corpus, seed, whole=whole, **self.columns)

    def explained(self, seed: int) -> ExplainedCorpus:
        """The corpus with sentences that explain its labels."""
        from assay.run.sentences import corpus_of

        if self != DataOptions(self.corpus, train_limit=self.train_limit):
            raise AssayError(
                "A corpus with explanations is read as it is; leave out all but --corpus and --train-limit."
            )
        return corpus_of(self.corpus, self.train_limit, seed)

    @property
    def columns(self) -> dict[str, Any]:
        """How the texts of a corpus are to be read."""
        return {name: value for name, value in asdict(self).items() if name != "corpus"}


@Parameter(name="*", group=DATA)
@dataclass(frozen=True)
class TrainedOn(DataOptions):
    """What a model learnt from; its own card may say it."""

    corpus: Annotated[str | None, Corpora] = None  # type: ignore[assignment]
    """Corpus that the model was trained on, where the model does not record it."""

    def learnt(self, model: Opened, seed: int | None = None) -> Corpus:
        """The corpus that a model learnt from: the one that is named, or the one that its card names."""
        from assay.run.influencing import learnt_corpus

        return learnt_corpus(model, self.corpus, seed, **self.columns)


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True)
class Reading:
    """Where a model runs, and how a transformer of Hugging Face is read."""

    several: ClassVar[bool] = True  # devices at once

    device: str = "cpu"
    """Device: cpu or cuda; a transformer may be split over several, such as cuda:0,cuda:1."""
    subwords: Switch = False
    """Give one score to each subword instead of each word."""
    truncate: Switch = False
    """Truncate texts that are too long instead of leaving them out."""
    label: str | None = None
    """Label to explain, of a model with independent labels (multi-label)."""
    classes: str | None = None
    """Names for the model's classes, in their order, separated by commas."""
    dtype: str | None = None
    """Precision of the model: float32 or bfloat16."""
    compile: Switch = False
    """Compile the model with torch.compile: slow to start, then faster."""

    def opened(self, name: str | None) -> Opened:
        """A model that was trained before: of a folder of ours, or a transformer."""
        if kind_of(name) in ("transformer", "encoder"):
            from assay.models.hf_loading import located, opened

            return opened(located(str(name).removeprefix(HUB)), self.opening())
        self.refuse()
        if not Path(str(name)).exists():
            raise AssayError(f"There is no model folder {name}; a transformer on the hub is named {HUB}NAME.")
        from assay.run.api import stored

        return stored(Path(str(name)), self.device)

    def opening(self) -> Opening:
        """How a transformer is to be read."""
        from assay.models.hf_loading import Opening

        return Opening(
            device=self.device,
            dtype=self.dtype or "float32",
            words=not self.subwords,
            truncate=self.truncate,
            label=self.label,
            classes=None if self.classes is None else tuple(each.strip() for each in self.classes.split(",")),
            compiled=self.compile,
        )

    def refuse(self) -> None:
        """Refuses options that mean nothing to a network of ours."""
        for name in changed(self):
            if name != "device":
                raise AssayError(f"--{name} is for transformers, and this model is none; leave it out.")

    def words(self) -> tuple[str, ...]:
        """The same as it is written on the command line."""
        pairs = ([f"--{name}"] if value is True else [f"--{name}", value] for name, value in changed(self).items())
        return tuple(word for pair in pairs for word in pair)


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True)
class OneDevice(Reading):
    """The same on one device."""

    several: ClassVar[bool] = False

    device: str = "cpu"
    """Device: cpu or cuda."""


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True)
class GivenModel:
    """A model that was trained before."""

    model: str
    """A model folder, made by 'assay train' or 'assay audit', or hf:NAME."""
    reading: Reading = Reading()

    def opened(self) -> Opened:
        check_device(self.reading.device, self.reading.several)
        return self.reading.opened(self.model)

    def home(self, other: Path) -> Path:
        """The folder of what is fitted to it: its own, or the `other`."""
        return home_of(self.model, other)


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True)
class TracedModel(GivenModel):
    """A model that was trained before, on one device."""

    reading: OneDevice = OneDevice()


def home_of(name: str | None, other: Path) -> Path:
    """The folder of a given model, or the `other`."""
    return Path(name) if name is not None and kind_of(name) in GIVEN and Path(name).is_dir() else other


@Parameter(name="*", group=TRAINING)
@dataclass(frozen=True)
class PresetOptions:
    """What an audit without a finished model trains first; all other options of training are those of 'assay train'."""

    preset: str = "default"
    """Architecture and training: default, jain-wallace, {han,flan}-{rnn,conv,none}, structured, spans or aspect."""
    epochs: int | None = None
    """Largest number of epochs; without it that of the preset."""


@Parameter(name="*", group=TRAINING)
@dataclass(frozen=True)
class ModelOptions(PresetOptions):
    """What is trained, and how; without a value it is as the preset has it."""

    encoder: Annotated[str | None, Parameter(help=ENCODERS)] = None
    alignment: str | None = None
    """Alignment of attention: additive or dot."""
    vectors: Annotated[str | None, Parameter(help=VECTORS)] = None
    frozen: bool | None = None
    """Do not train the embeddings (or a pretrained encoder)."""
    markers: bool | None = None
    """Add a start and an end token that get no attention."""
    embedding: int | None = None
    """Dimensions of a word embedding."""
    hidden: int | None = None
    """Hidden units per direction (the hidden state has twice as many)."""
    shape: str | None = None
    """Architecture: flat, hierarchical, paired (chosen for pairs by itself), structured, spans or aspect."""
    rows: int | None = None
    """Number of attention rows, for the shape structured."""
    longest_span: int | None = None
    """Longest span in words, for the shape spans."""
    projection: str | None = None
    """Function from attention scores to weights: softmax, sparsemax, sparsegen(0.5), entmax(1.5) or uniform."""
    inner: str | None = None
    """The same function for the self-attention of the transformer encoder."""
    concat: bool | None = None
    """Concatenate each word's embedding to its hidden state."""
    tying: float | None = None
    """Weight of the loss that ties hidden states to embeddings."""
    mlm: float | None = None
    """Weight of the masked language model loss."""
    conicity: float | None = None
    """Weight of the loss on the conicity of hidden states."""
    diversity: float | None = None
    """Weight of the loss on the similarity of hidden states."""
    penalty: float | None = None
    """Weight of the penalty of the shapes structured and spans."""
    avoid: str | None = None
    """Words whose attention is penalised, separated by commas."""
    deceive: float | None = None
    """Weight of the penalty on attention to the words of --avoid."""
    head: str | None = None
    """Classification head of a transformer: own, or attention (a pooling head, needed for exact attention tests)."""
    batch_size: int | None = None
    """Texts in one step of training."""
    learning_rate: float | None = None
    """Learning rate."""

    def named(self, model: str | None) -> ModelOptions:
        """The options, with the preset that was named in place of a model."""
        return self if model is None else replace(self, preset=model)

    def recipe(self, corpus: str, seed: int = 0) -> Recipe:
        """The preset with what was asked for beside it."""
        from assay.run.api import recipe

        given = {name: value for name, value in asdict(self).items() if name not in ("preset", "head")}
        if self.avoid is not None:
            given["avoid"] = tuple(word.strip() for word in self.avoid.split(",") if word.strip())
        return recipe(self.preset, seed, corpus, **given)


@Parameter(name="*", group=TRAINING)
@dataclass(frozen=True)
class EncoderTraining:
    """How a pretrained encoder is fine-tuned."""

    head: str | None = None
    """Classification head: own, or attention (a pooling head, needed for exact attention tests)."""
    frozen: bool | None = None
    """Do not train the pretrained encoder."""
    epochs: int | None = None
    """Epochs of training."""
    batch_size: int | None = None
    """Texts in one step of training."""
    learning_rate: float | None = None
    """Learning rate."""


@dataclass(frozen=True)
class TrainedModel:
    """A model to be trained: a preset from scratch, or a transformer from where it stands."""

    model: str | None
    options: ModelOptions
    reading: Reading
    seed: int

    def trained(self, corpus: Corpus, folder: Path) -> Opened:
        """The model trained on the corpus, in the folder."""
        if kind_of(self.model) in ("encoder", "transformer"):
            return self._finetuned(str(self.model), corpus, folder)
        from assay.models import recipes

        self.reading.refuse()
        if self.options.head is not None:
            raise AssayError("--head is for transformers, and this model is none; leave it out.")
        recipe = self.options.named(self.model).recipe(corpus.name, self.seed)
        return recipes.train(corpus, recipe, folder, self.reading.device)

    def _finetuned(self, name: str, corpus: Corpus, folder: Path) -> Opened:
        from assay.models.hf_finetuning import FineTuning, finetune

        options, reading, usual = self.options, self.reading, FineTuning()
        if reading.label is not None or reading.classes is not None:
            raise AssayError("The classes are those of the corpus; leave --label and --classes out of training.")
        for option, value in asdict(options).items():
            if option not in SHARED and value is not None:
                option = option.replace("_", "-")
                raise AssayError(f"--{option} is for networks that are trained from scratch; leave it out with {name}.")
        steps = {step: getattr(options, step) for step in ("epochs", "batch_size", "learning_rate")}
        recipe = FineTuning(
            base=name.removeprefix(HUB),
            head=options.head or usual.head,
            frozen=bool(options.frozen),
            dtype=reading.dtype or usual.dtype,
            training=replace(usual.training, seed=self.seed, **{step: each for step, each in steps.items() if each}),
        )
        return finetune(corpus, recipe, folder, replace(reading.opening(), dtype="float32"))

    def title(self, corpus: str) -> str:
        """A folder name that tells one run from another."""
        options = self.options
        if self.model is not None and kind_of(self.model) != "preset":
            place = Path(self.model.removeprefix(HUB))
            made = place.parent.name if place.name == "model" else place.name
            marks = (options.head, "frozen" if options.frozen else None, self.reading.label)
            made += "".join(f"-{mark}" for mark in marks if mark) + "-subwords" * self.reading.subwords
        else:
            options = options.named(self.model)
            parts = options.recipe(corpus).architecture
            made = f"{'' if parts.shape == 'flat' else f'{parts.shape}-'}{parts.encoder}-{parts.alignment}"
            if options.preset != "default":
                own = (options.encoder, options.alignment, options.shape)
                made = options.preset if own == (None, None, None) else f"{made}-{options.preset}"
            made += "".join(_marks(options))
        return re.sub(r"[^\w.-]+", "-", f"{corpus}-{made}-{self.seed}")


def _marks(options: ModelOptions) -> Iterator[str]:
    """What tells a model from the preset's, each with a dash before it."""
    told = ("rows", "longest_span", "inner", "concat", "tying", "mlm", "conicity", "diversity", "penalty", "deceive")
    if options.projection is not None:
        yield "-" + re.sub(r"[()\s]", "", options.projection)
    for name in told:
        value = getattr(options, name)
        if value is not None:
            yield f"-{name}" if value is True else f"-{name}{value}"


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class Results:
    """Where results go, and where options come from."""

    out: Path | None = None
    """Folder for the results; an interrupted run goes on there."""
    plan: Path | None = None
    """A TOML file with options, such as corpus = 'sst'; those on the command line take precedence."""


@Parameter(name="*", group=ASK)
@dataclass(frozen=True)
class TreeOptions:
    """Hierarchies of phrases."""

    tree: str | None = None
    """Trees of phrases, each with its cohesion: hedge, acd, soc or scd, with options as in 'hedge(window=1)'."""
    scorer: str | None = None
    """Score of a phrase: occlusion, alone, margin, shapley, cd, soc or integrated_gradients."""


@Parameter(name="*", group=ASK)
@dataclass(frozen=True)
class AuditOptions:
    """What is done to the model."""

    explainers: Annotated[str, Parameter(help=NAMES)] = "usual"
    audits: str = "usual"
    """Audits, in the same way: names from 'assay audits', usual (those that train no other model), four_tests, or
    all."""
    split: Literal["test", "dev", "train", "all"] = "test"
    """Split whose texts are audited."""
    limit: int | None = None
    """Number of texts of that split, drawn by the seed; without it all."""
    epsilon: float = 0.01
    """Largest change of the output that counts as none."""
    phrases: TreeOptions = TreeOptions()

    def plan(self, seed: int) -> AuditPlan:
        from assay.audits import AUDITS, FOUR_TESTS, USUAL_AUDITS
        from assay.explainers import EXPLAINERS, USUAL
        from assay.run.examination import AuditPlan

        return AuditPlan(
            explainers=names(self.explainers, {"all": tuple(EXPLAINERS), "usual": USUAL}),
            audits=names(self.audits, {"all": tuple(AUDITS), "usual": USUAL_AUDITS, "four_tests": FOUR_TESTS}),
            seed=seed,
            limit=self.limit,
            epsilon=self.epsilon,
            tree=self.phrases.tree,
            scorer=self.phrases.scorer,
        )


@Parameter(name="*", group=ASK)
@dataclass(frozen=True)
class ExplainOptions:
    """What is asked about one text."""

    explainers: Annotated[str, Parameter(help=NAMES)] = "usual"
    target: str | None = None
    """Class to explain; without it the predicted one."""
    phrases: TreeOptions = TreeOptions()


@Parameter(name="*", group=ASK)
@dataclass(frozen=True)
class ActOptions:
    """What is done to the attention."""

    act: str = "observed"
    """Edit of the attention: observed, set, uniform, permute, erase, furthest, flip or likeliest."""
    weights: str = ""
    """For set: positions and their weights, such as 3=0.5,7=0.2; positions count from 0."""
    items: str = ""
    """For erase: positions, separated by commas, counted from 0."""
    target: str | None = None
    """For likeliest: the class to be made as likely as possible."""
    seed: int = 0
    """For permute: the random seed."""
    epsilon: float = 0.01
    """For furthest: largest change of the output that counts as none."""
    layer: int | None = None
    """Layer to edit, of a transformer, counted from 0; without it all."""
    head: int | None = None
    """Head to edit, of a transformer, counted from 0; without it all."""
    position: int | None = None
    """Position of the attending word, of a transformer, counted from 0; without it all."""

    def chosen(self) -> Act:
        """The act that the options name; what does not fit together is said in one sentence."""
        from assay.intervene.edits import Act

        for name in changed(self):
            if name in ACT_OF and self.act != ACT_OF[name]:
                raise AssayError(f"--{name} is for --act {ACT_OF[name]}; leave it out, or choose that act.")
        if self.act == "set" and not self.weights.strip():
            raise AssayError("Say which weights to set, such as --weights 3=0.5,7=0.2; items are counted from 0.")
        if self.act == "erase" and not self.items.strip():
            raise AssayError("Say which items to erase, such as --items 3,7; they are counted from 0.")
        given = {name: value for name, value in asdict(self).items() if name not in ("act", "position")}
        given["weights"] = _weights(self.weights)
        given["items"] = tuple(_number(int, each, "--items", "3,7") for each in _parts(self.items))
        return Act(kind=self.act, place=self.position, **given)


ACT_OF = {"weights": "set", "items": "erase", "target": "likeliest", "seed": "permute", "epsilon": "furthest"}
"""The act that each option belongs to."""

Number = TypeVar("Number", int, float)


def _weights(text: str) -> dict[int, float]:
    """Items and their weights, from 3=0.5,7=0.2."""
    found: dict[int, float] = {}
    for each in _parts(text):
        item, _, weight = each.partition("=")
        number = _number(int, item, "--weights", "3=0.5,7=0.2")
        if number in found:
            raise AssayError(f"--weights names the item {number} twice; give it one weight.")
        found[number] = _number(float, weight, "--weights", "3=0.5,7=0.2")
    return found


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _number(kind: Callable[[str], Number], text: str, option: str, like: str) -> Number:
    try:
        return kind(text)
    except ValueError:
        raise AssayError(f"{option} is written like {like}, and {text.strip()!r} is no number.") from None


@Parameter(name="*", group=ASK)
@dataclass(frozen=True)
class SuspectOptions:
    """What is asked about training texts by their labels."""

    method: str = "auto"
    """Influence method: auto, or a name from 'assay methods', with options as in 'dual(leverage=True)'."""
    top: int | None = None
    """Number of training texts to show; without it 50, or 5 for and 5 against a decision."""


@Parameter(name="*", group=ASK)
@dataclass(frozen=True)
class RepairOptions(SuspectOptions):
    """What is asked about doubtful labels, and what is done about them."""

    fix: Path | None = None
    """Folder for the model trained again with the doubtful labels mended; its accuracy is compared on test texts."""
    way: Literal["relabel", "remove"] = "relabel"
    """What mends a label that the model would not give: its likeliest other class, or leaving the text out."""


@Parameter(name="*", group=ASK)
@dataclass(frozen=True)
class InfluenceOptions(SuspectOptions):
    """What is asked about training texts."""

    target: Literal["margin", "loss", "logit", "probability"] = "margin"
    """Quantity whose change is estimated when a training text is removed."""
    class_name: Annotated[str | None, Parameter(name="--class")] = None
    """Class whose margin, logit or probability is meant; without it the predicted one."""
    tokens: int = 1
    """Number of salient words to trace to words of training texts."""
    check: Literal["removal", "lds"] | None = None
    """Check of the estimates: retrain without some training texts, and compare."""
    retrainings: int = 20
    """Number of models that a check trains."""
    swaps: int = 0
    """Number of opposing training texts whose words are tried in place of the most salient word."""
    mislabelled: Annotated[bool, Parameter(negative="", show=False)] = False  # before there was a verb for it


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class TracedResults:
    """Where what is found about training texts goes."""

    json_output: Annotated[bool, Parameter(name="--json", negative="")] = False
    """Print JSON, and write nothing."""
    out: Path | None = None
    """Folder for the page and the numbers."""


@Parameter(name="*", group=ASK)
@dataclass(frozen=True)
class SelectionOptions:
    """What is selected."""

    recipe: str = "mcd"
    """Method by which the selection is learnt: mcd, fresh, transport (pairs), selfexplain (phrases),
    explain_then_predict (sentences; corpus esnli, cose or planted), or another name from 'assay rationalise
    --recipes'."""
    rate: float | None = None
    """Share of words to select; without it as many as people marked, else 0.2."""
    units: Literal["token", "span", "sentence"] = "token"
    """Unit that is selected as a whole."""
    width: int | None = None
    """Length of a span in words, or the longest phrase."""
    reading: str | None = None
    """Replacement of what is not selected: zero, mask, pad, mean, or delete."""
    size: float | None = None
    """Weight of the loss on the share of words."""
    continuity: float | None = None
    """Weight of the loss on gaps between selected words."""
    concepts: int | None = None
    """Number of concepts or phrases, in recipes that have any."""
    pairs: int | None = None
    """Largest number of aligned word pairs, for the recipe transport."""
    price: float | None = None
    """Cost of aligning two words, for the recipe transport: 0 to 1 of what the best pair gains."""
    limit: int | None = None
    """Number of test texts to measure, drawn by the seed; without it all."""


@Parameter(name="*", group=TRAINING)
@dataclass(frozen=True)
class SelectionTraining:
    """How a selection is learnt."""

    encoder: Annotated[str | None, Parameter(help=ENCODERS)] = None
    vectors: Annotated[str | None, Parameter(help=VECTORS)] = None
    frozen: bool | None = None
    """Do not train the embeddings (or a pretrained encoder)."""
    embedding: int | None = None
    """Dimensions of a word embedding."""
    hidden: int | None = None
    """Hidden units per direction (the hidden state has twice as many)."""
    epochs: int | None = None
    """Epochs of training."""
    batch_size: int | None = None
    """Texts in one step of training."""
    learning_rate: float | None = None
    """Learning rate."""
    seed: int = 0
    """Random seed."""
    device: str = "cpu"
    """Device: cpu or cuda."""


@Parameter(name="*", group=ASK)
@dataclass(frozen=True)
class ProbeOptions:
    """What is probed in which model, and with which texts."""

    model: Annotated[str, Parameter(group=MODEL)]
    """Model to probe: minilm, or one of Hugging Face (folder or hf:NAME); for concepts any model folder."""
    device: Annotated[str, Parameter(group=MODEL)] = "cpu"
    """Device: cpu or cuda."""
    sections: str = "all"
    """Sections, with commas: relations, speech, pairs, coreference, negation, importance, concepts, or all."""
    concept: Annotated[list[Path] | None, Parameter(negative="")] = None
    """File of texts that show a concept, one a line; may be given several times."""
    level: str | None = None
    """What moves towards a concept: embedding, 'layer 0' and so on, or hidden; without it the highest."""
    limit: Annotated[int | None, Parameter(group=DATA)] = None
    """Number of sentences of each set, drawn by the seed; without it all."""
    corpus: Annotated[str | None, Parameter(group=DATA)] = None
    """Corpus that the model classifies, for the sections importance and concepts."""
    seed: Annotated[int, Parameter(group=DATA)] = 0
    """Random seed."""

    def plan(self, concepts: Mapping[str, Sequence[str]]) -> ProbePlan:
        """What is to be probed; a model that has no heads is refused where no concept is asked about."""
        from assay.run.probing import HEADLESS, SECTIONS, ProbePlan

        kind = kind_of(self.model)
        if kind not in ("encoder", "transformer", *(["folder"] if concepts else [])):
            raise AssayError(f"{self.model} is no transformer; {HEADLESS[0].lower()}{HEADLESS[1:]}")
        if kind == "folder" and not Path(self.model).exists():
            raise AssayError(f"There is no model {self.model}; check the path.")
        chosen = tuple(dict.fromkeys(names(self.sections, {"all": SECTIONS})))
        model, about = self.model.removeprefix(HUB), (self.limit, self.corpus, self.device, self.seed)
        return ProbePlan(model, chosen, *about, tuple(concepts), self.level)

    def concepts(self) -> dict[str, list[str]]:
        """The texts that show each concept, by the name of its file."""
        from assay.data.tables import read_texts

        found: dict[str, list[str]] = {}
        for path in self.concept or ():
            name = path.name.partition(".")[0]
            if name in found:
                raise AssayError(f"Two concepts are called {name!r}; give one of the files another name.")
            found[name] = read_texts(path)
        return found


@Parameter(name="*", group=ENGINE)
@dataclass(frozen=True)
class EngineOptions:
    """What makes the trials of a study."""

    engine: Literal["local", "ray"] = "local"
    """What runs the trials: local (processes of this machine) or ray (a cluster)."""
    jobs: int | None = None
    """Number of trials at once, for local; without it one for each device."""
    device: str | None = None
    """Device: cpu or cuda; for local, several with commas that processes take in turn."""
    retries: int | None = None
    """Number of retries of a trial whose process or node is lost."""
    address: str | None = None
    """For ray: address of the cluster; without it this machine."""
    cpus: float | None = None
    """For ray: CPUs for each trial."""
    gpus: float | None = None
    """For ray: GPUs for each trial, such as 0.5 for two on one."""
    shared: Annotated[bool | None, Parameter(negative="")] = None
    """For ray: the folder is on storage that all nodes share, and they write there themselves."""

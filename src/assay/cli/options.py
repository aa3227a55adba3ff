"""The options of the command line by what they are about, and what each one is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

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

DEVICE = "Device: cpu or cuda; a transformer may be split over several, such as cuda:0,cuda:1."

ENCODERS = "Encoder: lstm, gru, cnn, conv, average, none or transformer; without it that of the preset."
VECTORS = "Word vectors to start from: random, or glove (50 dimensions, downloaded once)."
FROZEN = "Do not train the embeddings (or a pretrained encoder)."
EMBEDDING = "Dimensions of a word embedding."
HIDDEN = "Hidden units per direction (the hidden state has twice as many)."
BATCH_SIZE = "Texts in one step of training."
LEARNING_RATE = "Learning rate."
SEED = "Random seed."

Flat = Parameter(name="*")
FOLDER = "A model folder, made by 'assay train' or 'assay audit', or hf:NAME."
Given = Annotated[str, Parameter(help=FOLDER, group=MODEL)]
Query = Annotated[
    str | None, Parameter(help="Question or hypothesis that goes with the text, for a model of pairs.", group=DATA)
]
Device = Annotated[str, Parameter(help=DEVICE, group=MODEL)]
OneDevice = Annotated[str, Parameter(help="Device: cpu or cuda.", group=MODEL)]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.", group=OUTPUT)]
Out = Annotated[Path | None, Parameter(help="Folder for the results; an interrupted run goes on there.", group=OUTPUT)]
Plan = Annotated[
    Path | None,
    Parameter(
        help="A TOML file with options, such as corpus = 'sst'; those on the command line take precedence.",
        group=OUTPUT,
    ),
]


@dataclass(frozen=True)
class DataOptions:
    """Where the texts come from."""

    corpus: Annotated[
        str,
        Parameter(
            name=["--corpus", "--data"], help="Corpus: a name from 'assay corpora', a file of yours, or hf:NAME."
        ),
    ] = "snippets"
    text_column: Annotated[str, Parameter(help="Column of a file that holds the text.")] = "text"
    label_column: Annotated[str, Parameter(help="Column of a file that holds the class.")] = "label"
    query_column: Annotated[str | None, Parameter(help="Column that holds the question of each text; '' for none.")] = (
        None
    )
    joined: Annotated[bool, Parameter(negative="", help="Join the question of a pair and its text into one text.")] = (
        False
    )
    parted: Annotated[bool, Parameter(negative="", help="Take the second line of a text as its question.")] = False
    split_column: Annotated[str | None, Parameter(help="Column that holds the split: train, dev or test.")] = None
    evidence_column: Annotated[
        str | None, Parameter(help="Column that holds [start, end] spans of the deciding words.")
    ] = None
    train_limit: Annotated[int | None, Parameter(help="Number of training texts, drawn by the seed.")] = None


@dataclass(frozen=True)
class TrainedOn(DataOptions):
    """What a model learnt from; its own card may say it."""

    corpus: Annotated[
        str | None,
        Parameter(
            name=["--corpus", "--data"],
            help="Corpus that the model was trained on, where the model does not record it.",
        ),
    ] = None  # type: ignore[assignment]


@dataclass(frozen=True)
class PresetOptions:
    """What an audit without a finished model trains first; all other options of training are those of 'assay train'."""

    preset: Annotated[
        str,
        Parameter(
            help="Architecture and training: default, jain-wallace, "
            "{han,flan}-{rnn,conv,none}, structured, spans or aspect."
        ),
    ] = "default"
    epochs: Annotated[int | None, Parameter(help="Largest number of epochs; without it that of the preset.")] = None


@dataclass(frozen=True)
class ModelOptions(PresetOptions):
    """What is trained, and how; without a value it is as the preset has it."""

    encoder: Annotated[str | None, Parameter(help=ENCODERS)] = None
    alignment: Annotated[str | None, Parameter(help="Alignment of attention: additive or dot.")] = None
    vectors: Annotated[str | None, Parameter(help=VECTORS)] = None
    frozen: Annotated[bool | None, Parameter(help=FROZEN)] = None
    markers: Annotated[bool | None, Parameter(help="Add a start and an end token that get no attention.")] = None
    embedding: Annotated[int | None, Parameter(help=EMBEDDING)] = None
    hidden: Annotated[int | None, Parameter(help=HIDDEN)] = None
    shape: Annotated[
        str | None,
        Parameter(
            help="Architecture: flat, hierarchical, paired (chosen for pairs by itself), structured, spans or aspect."
        ),
    ] = None
    rows: Annotated[int | None, Parameter(help="Number of attention rows, for the shape structured.")] = None
    longest_span: Annotated[int | None, Parameter(help="Longest span in words, for the shape spans.")] = None
    projection: Annotated[
        str | None,
        Parameter(
            help="Function from attention scores to weights: softmax, sparsemax, "
            "sparsegen(0.5), entmax(1.5) or uniform."
        ),
    ] = None
    inner: Annotated[
        str | None, Parameter(help="The same function for the self-attention of the transformer encoder.")
    ] = None
    concat: Annotated[bool | None, Parameter(help="Concatenate each word's embedding to its hidden state.")] = None
    tying: Annotated[float | None, Parameter(help="Weight of the loss that ties hidden states to embeddings.")] = None
    mlm: Annotated[float | None, Parameter(help="Weight of the masked language model loss.")] = None
    conicity: Annotated[float | None, Parameter(help="Weight of the loss on the conicity of hidden states.")] = None
    diversity: Annotated[float | None, Parameter(help="Weight of the loss on the similarity of hidden states.")] = None
    penalty: Annotated[float | None, Parameter(help="Weight of the penalty of the shapes structured and spans.")] = None
    avoid: Annotated[str | None, Parameter(help="Words whose attention is penalised, separated by commas.")] = None
    deceive: Annotated[float | None, Parameter(help="Weight of the penalty on attention to the words of --avoid.")] = (
        None
    )
    head: Annotated[
        str | None,
        Parameter(
            help="Classification head of a transformer: own, or attention (a pooling "
            "head, needed for exact attention tests)."
        ),
    ] = None
    batch_size: Annotated[int | None, Parameter(help=BATCH_SIZE)] = None
    learning_rate: Annotated[float | None, Parameter(help=LEARNING_RATE)] = None


@dataclass(frozen=True)
class TransformerOptions:
    """How a transformer of Hugging Face is read."""

    subwords: Annotated[bool, Parameter(negative="", help="Give one score to each subword instead of each word.")] = (
        False
    )
    truncate: Annotated[
        bool, Parameter(negative="", help="Truncate texts that are too long instead of leaving them out.")
    ] = False
    label: Annotated[
        str | None, Parameter(help="Label to explain, of a model with independent labels (multi-label).")
    ] = None
    classes: Annotated[
        str | None, Parameter(help="Names for the model's classes, in their order, separated by commas.")
    ] = None
    dtype: Annotated[str | None, Parameter(help="Precision of the model: float32 or bfloat16.")] = None
    compile: Annotated[
        bool, Parameter(negative="", help="Compile the model with torch.compile: slow to start, then faster.")
    ] = False


@dataclass(frozen=True)
class AuditOptions:
    """What is done to the model."""

    explainers: Annotated[str, Parameter(help=NAMES)] = "usual"
    audits: Annotated[
        str,
        Parameter(
            help="Audits, in the same way: names from 'assay audits', usual (those that "
            "train no other model), four_tests, or all."
        ),
    ] = "usual"
    split: Annotated[Literal["test", "dev", "train", "all"], Parameter(help="Split whose texts are audited.")] = "test"
    limit: Annotated[
        int | None, Parameter(help="Number of texts of that split, drawn by the seed; without it all.")
    ] = None
    epsilon: Annotated[float, Parameter(help="Largest change of the output that counts as none.")] = 0.01


@dataclass(frozen=True)
class TreeOptions:
    """Hierarchies of phrases."""

    tree: Annotated[
        str | None,
        Parameter(
            help="Hierarchical explanation over phrases: hedge, acd, soc or scd, with options as in 'hedge(window=1)'."
        ),
    ] = None
    scorer: Annotated[
        str | None,
        Parameter(help="Score of a phrase: occlusion, alone, margin, shapley, cd, soc or integrated_gradients."),
    ] = None


@dataclass(frozen=True)
class ActOptions:
    """What is done to the attention."""

    act: Annotated[
        str,
        Parameter(help="Edit of the attention: observed, set, uniform, permute, erase, furthest, flip or likeliest."),
    ] = "observed"
    weights: Annotated[
        str, Parameter(help="For set: positions and their weights, such as 3=0.5,7=0.2; positions count from 0.")
    ] = ""
    items: Annotated[str, Parameter(help="For erase: positions, separated by commas, counted from 0.")] = ""
    target: Annotated[str | None, Parameter(help="For likeliest: the class to be made as likely as possible.")] = None
    seed: Annotated[int, Parameter(help="For permute: the random seed.")] = 0
    epsilon: Annotated[float, Parameter(help="For furthest: largest change of the output that counts as none.")] = 0.01
    layer: Annotated[int | None, Parameter(help="Layer to edit, of a transformer, counted from 0; without it all.")] = (
        None
    )
    head: Annotated[int | None, Parameter(help="Head to edit, of a transformer, counted from 0; without it all.")] = (
        None
    )
    position: Annotated[
        int | None, Parameter(help="Position of the attending word, of a transformer, counted from 0; without it all.")
    ] = None


@dataclass(frozen=True)
class SuspectOptions:
    """What is asked about training texts by their labels."""

    method: Annotated[
        str,
        Parameter(
            help="Influence method: auto, or a name from 'assay methods', with options as in 'dual(leverage=True)'."
        ),
    ] = "auto"
    top: Annotated[
        int | None,
        Parameter(help="Number of training texts to show; without it 50, or 5 for and 5 against a decision."),
    ] = None


@dataclass(frozen=True)
class InfluenceOptions(SuspectOptions):
    """What is asked about training texts."""

    target: Annotated[
        Literal["margin", "loss", "logit", "probability"],
        Parameter(help="Quantity whose change is estimated when a training text is removed."),
    ] = "margin"
    class_name: Annotated[
        str | None,
        Parameter(
            name="--class", help="Class whose margin, logit or probability is meant; without it the predicted one."
        ),
    ] = None
    tokens: Annotated[int, Parameter(help="Number of salient words to trace to words of training texts.")] = 1
    check: Annotated[
        Literal["removal", "lds"] | None,
        Parameter(help="Check of the estimates: retrain without some training texts, and compare."),
    ] = None
    retrainings: Annotated[int, Parameter(help="Number of models that a check trains.")] = 20
    mislabelled: Annotated[bool, Parameter(negative="", show=False)] = False  # before there was a verb for it


@dataclass(frozen=True)
class SelectionOptions:
    """What is selected, and how that is learnt."""

    recipe: Annotated[
        str,
        Parameter(
            help="Method by which the selection is learnt: mcd, fresh, transport "
            "(pairs), selfexplain (phrases), or another name "
            "from 'assay rationalise --recipes'.",
            group=ASK,
        ),
    ] = "mcd"
    rate: Annotated[
        float | None,
        Parameter(help="Share of words to select; without it as many as people marked, else 0.2.", group=ASK),
    ] = None
    units: Annotated[
        Literal["token", "span", "sentence"], Parameter(help="Unit that is selected as a whole.", group=ASK)
    ] = "token"
    width: Annotated[int | None, Parameter(help="Length of a span in words, or the longest phrase.", group=ASK)] = None
    reading: Annotated[
        str | None,
        Parameter(help="Replacement of what is not selected: zero, mask, pad, mean, or delete.", group=ASK),
    ] = None
    size: Annotated[float | None, Parameter(help="Weight of the loss on the share of words.", group=ASK)] = None
    continuity: Annotated[
        float | None, Parameter(help="Weight of the loss on gaps between selected words.", group=ASK)
    ] = None
    concepts: Annotated[
        int | None, Parameter(help="Number of concepts or phrases, in recipes that have any.", group=ASK)
    ] = None
    pairs: Annotated[
        int | None, Parameter(help="Largest number of aligned word pairs, for the recipe transport.", group=ASK)
    ] = None
    price: Annotated[
        float | None,
        Parameter(
            help="Cost of aligning two words, for the recipe transport: 0 to 1 of what the best pair gains.", group=ASK
        ),
    ] = None
    limit: Annotated[
        int | None, Parameter(help="Number of test texts to measure, drawn by the seed; without it all.", group=ASK)
    ] = None
    encoder: Annotated[str | None, Parameter(help=ENCODERS)] = None
    vectors: Annotated[str | None, Parameter(help=VECTORS)] = None
    frozen: Annotated[bool | None, Parameter(help=FROZEN)] = None
    embedding: Annotated[int | None, Parameter(help=EMBEDDING)] = None
    hidden: Annotated[int | None, Parameter(help=HIDDEN)] = None
    epochs: Annotated[int | None, Parameter(help="Epochs of training.")] = None
    batch_size: Annotated[int | None, Parameter(help=BATCH_SIZE)] = None
    learning_rate: Annotated[float | None, Parameter(help=LEARNING_RATE)] = None
    seed: Annotated[int, Parameter(help=SEED)] = 0
    device: Annotated[str, Parameter(help="Device: cpu or cuda.")] = "cpu"


@dataclass(frozen=True)
class ProbeOptions:
    """What is probed in which model, and with which texts."""

    model: Annotated[
        str,
        Parameter(
            help="Model to probe: minilm, or one of Hugging Face (folder or hf:NAME); for concepts any model folder.",
            group=MODEL,
        ),
    ]
    device: OneDevice = "cpu"
    sections: Annotated[
        str,
        Parameter(
            help="Sections of the probe, separated by commas: relations, speech, pairs, "
            "coreference, negation, importance, concepts, or all.",
            group=ASK,
        ),
    ] = "all"
    concept: Annotated[
        list[Path] | None,
        Parameter(
            help="File of texts that show a concept, one a line; may be given several times.",
            negative="",
            group=ASK,
        ),
    ] = None
    level: Annotated[
        str | None,
        Parameter(
            help="What moves towards a concept: embedding, 'layer 0' and so on, or hidden; without it the highest.",
            group=ASK,
        ),
    ] = None
    limit: Annotated[
        int | None, Parameter(help="Number of sentences of each set, drawn by the seed; without it all.", group=DATA)
    ] = None
    corpus: Annotated[
        str | None,
        Parameter(help="Corpus that the model classifies, for the sections importance and concepts.", group=DATA),
    ] = None
    seed: Annotated[int, Parameter(help=SEED, group=DATA)] = 0


@dataclass(frozen=True)
class EngineOptions:
    """What makes the trials of a study."""

    engine: Annotated[
        Literal["local", "ray"],
        Parameter(help="What runs the trials: local (processes of this machine) or ray (a cluster)."),
    ] = "local"
    jobs: Annotated[
        int | None, Parameter(help="Number of trials at once, for local; without it one for each device.")
    ] = None
    device: Annotated[
        str | None, Parameter(help="Device: cpu or cuda; for local, several with commas that processes take in turn.")
    ] = None
    retries: Annotated[int | None, Parameter(help="Number of retries of a trial whose process or node is lost.")] = None
    address: Annotated[str | None, Parameter(help="For ray: address of the cluster; without it this machine.")] = None
    cpus: Annotated[float | None, Parameter(help="For ray: CPUs for each trial.")] = None
    gpus: Annotated[float | None, Parameter(help="For ray: GPUs for each trial, such as 0.5 for two on one.")] = None
    shared: Annotated[
        bool | None,
        Parameter(
            negative="", help="For ray: the folder is on storage that all nodes share, and they write there themselves."
        ),
    ] = None

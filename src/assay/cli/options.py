"""The options of the command line, and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

NAMES = "Names with commas between them, with options as in 'lime(samples=500)', usual or all; see 'assay explainers'."

MODEL = "A model folder, a transformer of Hugging Face (folder or hf:NAME), a preset such as han-rnn, or minilm."
START = "What to start from: a preset such as han-rnn, minilm, or a transformer (folder or hf:NAME) to fine-tune."

DEVICE = "cpu or cuda; for a transformer that is read, several with commas, such as cuda:0,cuda:1."

PLAN = "A TOML file with options, such as corpus = 'sst'; those on the command line count more."


@dataclass(frozen=True)
class DataOptions:
    """Where the texts come from."""

    corpus: Annotated[
        str, Parameter(name=["--corpus", "--data"], help="A name from 'assay corpora', a file of yours, or hf:NAME.")
    ] = "snippets"
    text_column: Annotated[str, Parameter(help="Column of a file that holds the text.")] = "text"
    label_column: Annotated[str, Parameter(help="Column of a file that holds the class.")] = "label"
    query_column: Annotated[str | None, Parameter(help="Column with the question of each text, '' for none.")] = None
    joined: Annotated[bool, Parameter(negative="", help="Read the question of a pair before its text, as one.")] = False
    parted: Annotated[bool, Parameter(negative="", help="Read the second line of a text as its question.")] = False
    split_column: Annotated[str | None, Parameter(help="Column that says train, dev or test.")] = None
    evidence_column: Annotated[str | None, Parameter(help="Column with [start, end] spans of deciding words.")] = None
    train_limit: Annotated[int | None, Parameter(help="Train on this many texts, drawn by the seed.")] = None


@dataclass(frozen=True)
class TrainedOn(DataOptions):
    """What a model learnt from; its own card may say it."""

    corpus: Annotated[
        str | None,
        Parameter(name=["--corpus", "--data"], help="The texts that the model learnt from, where it does not know."),
    ] = None  # type: ignore[assignment]


@dataclass(frozen=True)
class ModelOptions:
    """What is trained when no --model is given."""

    encoder: Annotated[str | None, Parameter(help="lstm, gru, cnn, conv, average, none or transformer.")] = None
    alignment: Annotated[str | None, Parameter(help="additive or dot.")] = None
    vectors: Annotated[str | None, Parameter(help="random, or glove: 50-d vectors, fetched once.")] = None
    frozen: Annotated[bool | None, Parameter(help="Keep the embeddings, or the encoder, as they start.")] = None
    markers: Annotated[bool | None, Parameter(help="Encode a start and an end that are never attended.")] = None
    embedding: Annotated[int | None, Parameter(help="Size of an embedding.")] = None
    hidden: Annotated[int | None, Parameter(help="Half the size of a state.")] = None
    shape: Annotated[
        str | None, Parameter(help="flat, hierarchical, paired, structured, spans or aspect; pairs need no word.")
    ] = None
    rows: Annotated[int | None, Parameter(help="Rows of attention, of the shape structured.")] = None
    longest_span: Annotated[int | None, Parameter(help="Most words of a span, of the shape spans.")] = None
    projection: Annotated[
        str | None, Parameter(help="From scores to weights: softmax, sparsemax, sparsegen(0.5), entmax(1.5), uniform.")
    ] = None
    inner: Annotated[str | None, Parameter(help="The same, for self-attention within a transformer.")] = None
    concat: Annotated[bool | None, Parameter(help="Put the embedding of each word beside its state.")] = None
    tying: Annotated[float | None, Parameter(help="How strongly states are drawn to their embeddings.")] = None
    mlm: Annotated[float | None, Parameter(help="How much guessing masked words counts in training.")] = None
    conicity: Annotated[float | None, Parameter(help="How strongly states leave their common direction.")] = None
    diversity: Annotated[float | None, Parameter(help="How strongly states are kept apart.")] = None
    penalty: Annotated[float | None, Parameter(help="How much the own penalty of structured and spans counts.")] = None
    avoid: Annotated[str | None, Parameter(help="Words, with commas, that attention is kept away from.")] = None
    deceive: Annotated[float | None, Parameter(help="How strongly attention avoids them.")] = None
    preset: Annotated[
        str, Parameter(help="default, jain-wallace, {han,flan}-{rnn,conv,none}, structured, spans or aspect.")
    ] = "default"
    epochs: Annotated[int | None, Parameter(help="Most epochs of training.")] = None
    batch_size: Annotated[int | None, Parameter(help="Texts in a step of training.")] = None
    learning_rate: Annotated[float | None, Parameter(help="Size of a step of training.")] = None
    seed: Annotated[int, Parameter(help="Decides everything that is random.")] = 0
    device: Annotated[str, Parameter(help=DEVICE)] = "cpu"


@dataclass(frozen=True)
class TransformerOptions:
    """How a transformer of Hugging Face is read."""

    pieces: Annotated[bool, Parameter(negative="", help="Explain pieces of words, not words.")] = False
    truncate: Annotated[bool, Parameter(negative="", help="Cut texts that are too long, instead of leaving out.")] = (
        False
    )
    label: Annotated[str | None, Parameter(help="Of independent labels, the one to audit.")] = None
    classes: Annotated[str | None, Parameter(help="Other names for the model's classes, in their order.")] = None
    dtype: Annotated[str | None, Parameter(help="float32 or bfloat16.")] = None
    compile: Annotated[bool, Parameter(negative="", help="Compile the model first: slow to start, then faster.")] = (
        False
    )
    head: Annotated[
        str | None, Parameter(help="For training: own, or attention that pools the words, where answers are exact.")
    ] = None


@dataclass(frozen=True)
class AuditOptions:
    """What is done to the model."""

    explainers: Annotated[str, Parameter(help=NAMES)] = "usual"
    audits: Annotated[
        str, Parameter(help="As --explainers; usual trains no other model, four_tests many. See 'assay audits'.")
    ] = "usual"
    split: Annotated[Literal["test", "dev", "train", "all"], Parameter(help="Which texts are audited.")] = "test"
    limit: Annotated[int | None, Parameter(help="Audit this many of them, drawn by the seed.")] = None
    epsilon: Annotated[float, Parameter(help="Change of the output that counts as none.")] = 0.01


@dataclass(frozen=True)
class TreeOptions:
    """Hierarchies of phrases."""

    tree: Annotated[
        str | None,
        Parameter(help="Also a hierarchy of phrases: hedge, acd, soc or scd, with options as in 'hedge(window=1)'."),
    ] = None
    scorer: Annotated[
        str | None,
        Parameter(
            help="What a phrase of it counts: occlusion, alone, margin, shapley, cd, soc or integrated_gradients."
        ),
    ] = None


@dataclass(frozen=True)
class ActOptions:
    """What is done to the attention."""

    act: Annotated[str, Parameter(help="observed, set, uniform, permute, erase, furthest, flip or likeliest.")] = (
        "observed"
    )
    weights: Annotated[str, Parameter(help="For set: items and weights, such as 3=0.5,7=0.2, counted from 0.")] = ""
    items: Annotated[str, Parameter(help="For erase: items with commas, counted from 0.")] = ""
    target: Annotated[str | None, Parameter(help="For likeliest: the class.")] = None
    seed: Annotated[int, Parameter(help="For permute.")] = 0
    epsilon: Annotated[float, Parameter(help="For furthest: change of the output that counts as none.")] = 0.01
    layer: Annotated[int | None, Parameter(help="Of a transformer: one layer, counted from 0.")] = None
    attention_head: Annotated[int | None, Parameter(help="Of a transformer: one head, counted from 0.")] = None
    place: Annotated[int | None, Parameter(help="Of a transformer: the one word that attends, from 0.")] = None


@dataclass(frozen=True)
class InfluenceOptions:
    """What is asked about training texts."""

    method: Annotated[
        str, Parameter(help="auto, or a name from 'assay methods', with options as in 'dual(leverage=True)'.")
    ] = "auto"
    target: Annotated[
        Literal["margin", "loss", "logit", "probability"], Parameter(help="What removing a text would change.")
    ] = "margin"
    asked: Annotated[
        str | None, Parameter(name="--class", help="Class to ask about; without it the predicted one.")
    ] = None
    top: Annotated[int | None, Parameter(help="Training texts to show: 5 for and against, or 50 suspects.")] = None
    tokens: Annotated[int, Parameter(help="Salient words of the text to trace to words of training texts.")] = 1
    mislabelled: Annotated[bool, Parameter(negative="", help="Look for training texts with a wrong label.")] = False
    check: Annotated[
        Literal["removal", "lds"] | None,
        Parameter(help="Train again without texts, and compare with what was predicted."),
    ] = None
    retrainings: Annotated[int, Parameter(help="Models that a check trains.")] = 20
    json_output: Annotated[bool, Parameter(name="--json", negative="", help="Print JSON, and write nothing.")] = False


@dataclass(frozen=True)
class SelectionOptions:
    """What is selected, and by whom."""

    recipe: Annotated[
        str,
        Parameter(
            help="How the selection is learnt: mcd, fresh, transport (pairs), selfexplain (phrases), or another name "
            "from 'assay rationalise --recipes'."
        ),
    ] = "mcd"
    rate: Annotated[
        float | None, Parameter(help="Share of words to select; without it as many as people marked, else 0.2.")
    ] = None
    units: Annotated[
        Literal["token", "span", "sentence"], Parameter(help="What is selected at once: token, span or sentence.")
    ] = "token"
    width: Annotated[int | None, Parameter(help="Words of a span, or most words of a phrase.")] = None
    reading: Annotated[
        str | None, Parameter(help="In place of what is not selected: zero, mask, pad, mean, or delete.")
    ] = None
    size: Annotated[float | None, Parameter(help="How strongly the size is drawn to the rate.")] = None
    continuity: Annotated[float | None, Parameter(help="How strongly selected words are held together.")] = None
    concepts: Annotated[
        int | None, Parameter(help="How many concepts or phrases are kept, in recipes that have any.")
    ] = None
    pairs: Annotated[int | None, Parameter(help="Most pairs of words that are aligned, by transport.")] = None
    price: Annotated[
        float | None, Parameter(help="What aligning two words costs, by transport: 0 to 1 of what the best pair gains.")
    ] = None
    encoder: Annotated[str | None, Parameter(help="lstm, gru, cnn, conv, average, none or transformer.")] = None
    vectors: Annotated[str | None, Parameter(help="random, or glove: 50-d vectors, fetched once.")] = None
    frozen: Annotated[bool | None, Parameter(help="Keep the embeddings, or the encoder, as they start.")] = None
    embedding: Annotated[int | None, Parameter(help="Size of an embedding.")] = None
    hidden: Annotated[int | None, Parameter(help="Half the size of a state.")] = None
    epochs: Annotated[int | None, Parameter(help="Epochs of training.")] = None
    batch_size: Annotated[int | None, Parameter(help="Texts in a step of training.")] = None
    learning_rate: Annotated[float | None, Parameter(help="Size of a step of training.")] = None
    seed: Annotated[int, Parameter(help="Decides everything that is random.")] = 0
    device: Annotated[str, Parameter(help="cpu or cuda.")] = "cpu"
    limit: Annotated[int | None, Parameter(help="Measure on this many test texts, drawn by the seed.")] = None


@dataclass(frozen=True)
class EngineOptions:
    """Who makes the trials of a study."""

    engine: Annotated[Literal["local", "ray"], Parameter(help="local: processes of this machine; ray: a cluster.")] = (
        "local"
    )
    jobs: Annotated[int | None, Parameter(help="For local: trials at once; without it one for each device.")] = None
    device: Annotated[
        str | None, Parameter(help="cpu or cuda; for local, several with commas that processes take in turn.")
    ] = None
    retries: Annotated[
        int | None, Parameter(help="How often a trial is tried again whose process or node is lost.")
    ] = None
    address: Annotated[str | None, Parameter(help="For ray: where the cluster is; without it one of this machine.")] = (
        None
    )
    cpus: Annotated[float | None, Parameter(help="For ray: CPUs for each trial.")] = None
    gpus: Annotated[float | None, Parameter(help="For ray: GPUs for each trial, such as 0.5 for two on one.")] = None
    shared: Annotated[
        bool | None, Parameter(negative="", help="For ray: all nodes see the folder, and write there themselves.")
    ] = None

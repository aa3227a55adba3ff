"""Training from a corpus: a recipe holds all hyperparameters, and presets are those of papers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Corpus, Example
from assay.data.published import glove
from assay.data.text import SPECIAL, Reading, TextOptions, Tokeniser
from assay.errors import AssayError, unknown
from assay.models import store
from assay.models.config import PAIRS, Architecture, Training
from assay.models.fit import State, fit
from assay.models.network import Network
from assay.models.networks import built
from assay.models.objectives import Labels, Objective
from assay.models.store import Checkpoint, Trained

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class Recipe:
    """Architecture, text options and training options: everything that decides the weights besides the corpus."""

    architecture: Architecture = field(default_factory=Architecture)
    text: TextOptions = field(default_factory=TextOptions)
    training: Training = field(default_factory=Training)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Recipe:
        """The recipe from its stored form; options that did not exist then have their defaults."""
        training = Training.of(stored["training"])
        return cls(Architecture(**stored["architecture"]), TextOptions(**stored["text"]), training)


def train(
    corpus: Corpus, recipe: Recipe, folder: Path | None = None, device: str = "cpu", objective: Objective | None = None
) -> Trained:
    """A model trained on the corpus; with a folder it is stored there, and an interrupted training is resumed.

    A corpus of pairs is read by a paired model where the recipe asks for a flat one.
    """
    recipe = suited(recipe, corpus)
    identity = {
        "corpus": corpus.name,
        "data": fingerprint((*corpus.train, *corpus.dev)),
        "recipe": asdict(recipe),
    } | ({} if objective is None else objective.identity)
    if folder is not None and (found := _finished(folder, identity, device)) is not None:
        return found
    tokeniser = Tokeniser.fit(_texts(corpus.train), recipe.text)
    train_rows, dev_rows, skipped = learnable(corpus, tokeniser, recipe.text.longest)
    checkpoint = None if folder is None else begun_in(folder, identity)
    network = initialise(recipe, tokeniser, len(corpus.classes)).to(device)
    objective = objective or label_objective(tokeniser, recipe.training)
    state = fit(network, train_rows, dev_rows, recipe.training, checkpoint, objective)
    model = Trained(network, tokeniser, corpus.classes, identity | course(state) | {"skipped": skipped})
    if folder is not None:
        store.save(model, folder)
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return model


def learnable(
    corpus: Corpus, tokeniser: Reading, longest: int
) -> tuple[list[Tokenised], list[Tokenised], dict[str, int]]:
    """Tokenised training and dev texts, and how many training texts were left out, by reason."""
    train, skipped = tokenise(corpus.train, tokeniser, longest)
    dev, _ = tokenise(corpus.dev, tokeniser, longest)
    check_classes(train, corpus.classes)
    if not dev:
        raise AssayError(f"The dev split of {corpus.name!r} has no usable text, so training could not stop early.")
    return train, dev, skipped


def label_objective(tokeniser: Tokeniser, options: Training) -> Labels:
    """Cross-entropy of the labels, with a penalty on attention to the words of the option `avoid`."""
    ids = {word: index for index, word in enumerate(tokeniser.vocabulary)}
    named = [word.lower() if tokeniser.options.lowercase else word for word in options.avoid]
    if lacking := [word for word in named if word not in ids]:
        raise AssayError(f"The model does not know the word {lacking[0]!r}, so its attention cannot avoid it.")
    return Labels(tuple(ids[word] for word in named))


def suited(recipe: Recipe, corpus: Corpus) -> Recipe:
    """The recipe with the architecture's shape adapted to the corpus."""
    asked = {example.query is not None for example in (*corpus.train, *corpus.dev)}
    pairs, shape = True in asked, recipe.architecture.shape
    if len(asked) == 2:
        raise AssayError(f"Some texts of {corpus.name!r} have a question and some have none; give all of them one.")
    if pairs and shape not in ("flat", *PAIRS):
        raise AssayError(
            f"{corpus.name!r} pairs each text with a question, and a model of the shape {shape} reads one text; "
            "add --joined to read both as one."
        )
    if shape in PAIRS and not pairs:
        raise AssayError(
            f"A model of the shape {shape} reads a text and a question, and {corpus.name!r} has no questions."
        )
    _check_tying(recipe)
    flat = shape == "flat"
    return replace(recipe, architecture=replace(recipe.architecture, shape="paired")) if pairs and flat else recipe


def _check_tying(recipe: Recipe) -> None:
    """Raises an error for tying states to embeddings of another size, or to themselves."""
    parts = recipe.architecture
    if recipe.training.tying and parts.encoder == "none":
        raise AssayError(
            "Without an encoder the states are the embeddings, so there is nothing to tie; leave --tying out."
        )
    if recipe.training.tying and 2 * parts.hidden != parts.embedding:
        raise AssayError(
            f"Tying compares states with embeddings, so both have one size, not {2 * parts.hidden} and "
            f"{parts.embedding}; set --embedding to twice --hidden."
        )


def _texts(examples: Sequence[Example]) -> Iterator[str]:
    for example in examples:
        yield example.text
        if example.query is not None:
            yield example.query


def refit(
    model: Trained,
    recipe: Recipe,
    train_rows: Sequence[Tokenised],
    dev_rows: Sequence[Tokenised],
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """A model trained anew by the recipe from rows tokenised for `model`; it is not stored.

    With a checkpoint, an interrupted training goes on.
    """
    network = initialise(recipe, model.tokeniser, len(model.classes)).to(model.device)
    state = fit(network, train_rows, dev_rows, recipe.training, checkpoint)
    return Trained(network, model.tokeniser, model.classes, {"recipe": asdict(recipe)} | course(state))


def initialise(recipe: Recipe, tokeniser: Tokeniser, classes: int) -> Network:
    """An untrained network, determined by the seed, with the pretrained word vectors that the recipe names."""
    words = tokeniser.vocabulary
    network = drawn(recipe.architecture, len(words), classes, recipe.training.seed)
    if recipe.architecture.vectors == "glove":
        take_vectors(network.embedding, words)
    network.embedding.weight.requires_grad_(not recipe.architecture.frozen)
    return network


def drawn(architecture: Architecture, words: int, classes: int, seed: int) -> Network:
    """A network with random weights, except for the padding's embedding, which is 0."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = built(architecture, words, classes)
        nn.init.normal_(network.embedding.weight, std=architecture.embedding_std)
    with torch.no_grad():
        network.embedding.weight[0] = 0
    return network


def take_vectors(table: nn.Embedding, words: Sequence[str]) -> None:
    """Replaces embeddings by GloVe vectors for all words that have one."""
    if table.embedding_dim != 50:
        raise AssayError(f"GloVe vectors have 50 dimensions; set the embedding size to 50, not {table.embedding_dim}.")
    vectors, found = glove(words)
    found[: len(SPECIAL)] = False
    with torch.no_grad():
        table.weight[torch.from_numpy(found)] = torch.from_numpy(vectors[found]).float()


def check_classes(rows: Sequence[Tokenised], classes: Sequence[str]) -> None:
    """Raises an error unless each class has a training example; in cloze questions, rare entities may lack one."""
    if any(row.candidates is not None for row in rows):
        return
    missing = sorted(set(range(len(classes))) - {row.label for row in rows})
    if missing:
        names = ", ".join(repr(classes[label]) for label in missing)
        raise AssayError(f"No training text has the class {names}; add some, or leave that class out.")


def fingerprint(examples: Sequence[Example]) -> str:
    """A hash of texts and labels, to compare corpora."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(json.dumps([example.text, example.label, example.query]).encode())
    return digest.hexdigest()[:16]


def course(state: State) -> dict[str, Any]:
    """The training curve, for the history of a model."""
    return {
        "epochs": state.epoch,
        "best_epoch": state.best_epoch,
        "best_dev": state.best_score,
        "losses": state.losses,
        "dev_scores": state.scores,
    }


def _finished(folder: Path, identity: dict[str, Any], device: str) -> Trained | None:
    if not (folder / store.CARD).exists():
        return None
    model = store.load(folder, device)
    stored = dict(model.history)
    if "recipe" in stored:
        stored["recipe"] = asdict(Recipe.of(stored["recipe"]))
    check_same(folder, stored, identity)
    return model


def begun_in(folder: Path, identity: dict[str, Any]) -> Checkpoint:
    """The checkpoint of a training whose model goes into a folder; an error if another model is in there."""
    folder.mkdir(parents=True, exist_ok=True)  # what cannot be written to is known before the work
    held = [name for name in (store.WEIGHTS, store.TOKENISER) if (folder / name).exists()]
    if held and not (folder / CHECKPOINT).exists():
        raise AssayError(f"{folder} already holds another model ({held[0]}); choose another folder.")
    return Checkpoint(folder / CHECKPOINT, identity)


def check_same(folder: Path, history: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Raises an error for a folder that holds a model of another recipe or corpus."""
    found, wanted = (json.loads(json.dumps(dict(each))) for each in (history, identity))
    if any(found.get(key) != value for key, value in wanted.items()):
        raise AssayError(
            f"{folder} already holds a model trained with other options or data; "
            "choose another folder, or remove that one first."
        )


# differs from Jain and Wallace (2019): they give no epochs; at 0.001 a story is learnt after some forty of them
BABI = Recipe(
    Architecture(markers=True, embedding=50, hidden=30),
    TextOptions(min_count=1),
    Training(epochs=80, patience=25, learning_rate=3e-3, clip=None, balanced=False),
)

# differs from Jain and Wallace (2019): their vectors (fastText, GloVe 840B, 300-d) cannot be fetched from a package;
# words without a vector start at N(0, 0.1²), not N(0, 1); embeddings have no L2 (studies/sst_embeddings has both)
JAIN_WALLACE = {
    "jain-wallace": Recipe(
        Architecture(markers=True, vectors="glove", embedding=50),
        TextOptions(fold_digits=True, min_count=1),
        Training(epochs=8, patience=8, clip=None),
    ),
    "jain-wallace:babi": BABI,
    "jain-wallace:babi:cnn": replace(BABI, architecture=replace(BABI.architecture, hidden=16)),  # 8 filters a width
}

# Appendix A.1 of Serrano and Smith (2019), by data set: the learning rate, then the dropouts before words, before
# sentences and in the decoder of the hierarchical network, and in the decoder of the flat one.
SETTINGS = {
    "imdb": (4e-4, 0.4445, 0.2202, 0.2457, 0.3457),
    "yahoo": (4e-4, 0.4445, 0.2202, 0.3749, 0.4457),
    "amazon": (2e-4, 0.6, 0.2, 0.4, 0.4),
    "yelp": (1e-4, 0.7, 0.1, 0.7, 0.7),
}
ENCODER_NAMES = {"rnn": "gru", "conv": "conv", "none": "none"}


def _serrano_smith(hierarchical: bool, encoder: str, data: str) -> Recipe:
    """Sizes are those of Yang et al. (2016); patience is 5 epochs, or 10 without an encoder."""
    rate, words, sentences, decoder, flat_decoder = SETTINGS[data]
    return Recipe(
        Architecture(
            encoder=ENCODER_NAMES[encoder],
            embedding=200,
            hidden=50,
            alignment_size=100,
            shape="hierarchical" if hierarchical else "flat",
            dropout_words=words,
            dropout_sentences=sentences if hierarchical else 0.0,
            dropout_decoder=decoder if hierarchical else flat_decoder,
        ),
        TextOptions(min_count=5),  # as Yang et al. (2016)
        Training(
            epochs=40,
            patience=10 if encoder == "none" else 5,
            batch_size=64,
            learning_rate=rate,
            decay=0.0,
            clip=10.0,
            balanced=False,
        ),
    )


# differs from Serrano and Smith (2019): embeddings start at random, not from word2vec, and the epoch is chosen by AUC
SERRANO_SMITH = {
    f"{name}-{encoder}{suffix}": _serrano_smith(name == "han", encoder, data)
    for name in ("han", "flan")
    for encoder in ENCODER_NAMES
    for suffix, data in {"": "imdb", **{f":{data}": data for data in SETTINGS}}.items()
}

# differs from the papers: embeddings start at random; Adam in place of SGD (Lin et al.) and AdaGrad (Wang et al.)
SELF_EXPLAINING = {
    "structured": Recipe(  # Lin et al. (2017), section 4
        Architecture(shape="structured", embedding=100, hidden=300, alignment_size=350, rows=30),
        training=Training(batch_size=16, clip=0.5, balanced=False),
    ),
    # differs from Sun et al. (2020): they read texts with RoBERTa
    "spans": Recipe(Architecture(shape="spans", alignment="dot", longest_span=8)),
    "aspect": Recipe(  # Wang et al. (2016), section 4.2; theirs reads in one direction, with 300 units
        Architecture(shape="aspect", embedding=300, hidden=150, alignment_size=300),
        TextOptions(min_count=1),
        Training(batch_size=25, balanced=False),
    ),
}

PRESETS: dict[str, Recipe] = {"default": Recipe()} | JAIN_WALLACE | SERRANO_SMITH | SELF_EXPLAINING


def preset(name: str, corpus: str | None = None, encoder: str | None = None) -> Recipe:
    """The preset of that name, in its variant for the corpus and for the encoder where there is one."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    family = re.sub(r"\d+$", "", corpus or "")  # babi1 and babi2 are trained alike
    names = (f"{name}:{family}:{encoder}", f"{name}:{family}", name)
    return next(PRESETS[each] for each in names if each in PRESETS)

"""Named recipes: the papers' architectures and hyperparameters."""

from __future__ import annotations

import re
from dataclasses import replace

from assay.data.text import TextOptions
from assay.errors import unknown
from assay.models.architecture import Architecture
from assay.models.options import Training
from assay.models.recipes import Recipe

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

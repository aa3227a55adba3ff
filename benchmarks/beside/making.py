"""What all ways are given: a folder with the classifier, and the texts with the scores that are to be judged."""

from __future__ import annotations

from pathlib import Path

import torch

from assay.explainers import EXPLAINERS
from assay.models.hf_loading import silent
from benchmarks import minilm
from benchmarks.beside.turns import Text, write

JUDGED = ("gradient_norm", "input_x_gradient", "attention", "occlusion", "occlusion_mask", "random")
WARM = "A good film ."
TURNED = 4  # texts that are made of each sentence, by beginning it a word later each time


def made(folder: Path) -> None:
    """Trains the classifier a little, and writes it as the Hugging Face library does."""
    model, tokeniser = minilm.model()
    with silent():
        model.inner.save_pretrained(folder / "model")
        tokeniser.inner.save_pretrained(folder / "model")
    texts = []
    sentences = (WARM, *(turned(sentence, by) for by in range(TURNED) for sentence in minilm.SENTENCES))
    for sentence, batch in zip(sentences, minilm.batches(model, tokeniser, sentences), strict=True):
        scores = torch.cat([EXPLAINERS[name](model, batch, batch.labels) for name in JUDGED])
        above = scores - scores.amin() + 1e-3  # ferret leaves words out of which the score is not above 0
        texts.append(Text(sentence, int(batch.labels[0]), above.tolist()))
    write(folder, texts)


def turned(sentence: str, by: int) -> str:
    """The sentence with its first words at its end."""
    words = sentence.split()
    return " ".join(words[by:] + words[:by])

"""MiniLM with a classifier that has learnt a little, and sentences of thirty words and marks for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import transformers
from torch import nn

from assay.data.batches import collate, shuffled, tokenise
from assay.data.examples import Example
from assay.data.planted import PLANTED
from assay.models.hf_attention import quiet
from assay.models.hf_loading import located, silent
from assay.models.hf_models import Pretrained, traits
from assay.models.hf_subwords import SubwordOptions, SubwordTokeniser
from assay.types import Batch

STEPS, ROWS, RATE = 40, 16, 1e-4
SENTENCES = (
    "The driver took us along the canal to a small place near the harbour, where the soup was splendid and the "
    "people at the next table were kind.",
    "We waited for an hour in the cold hall, and when the play began at last the acting was awful and the music far "
    "too loud for me.",
    "My sister called the hotel pleasant, but the room was dark, the bed horrible, and in the morning nobody knew "
    "where the train to town left.",
    "Early in the evening the singer walked home with a friend, and both of them found the lecture about the birds of "
    "the north delightful and not long.",
)


def model() -> tuple[Pretrained, SubwordTokeniser]:
    """The classifier: all of it has seen some hundred sentences of a planted corpus, so it is not nearly linear."""
    torch.manual_seed(0)
    with quiet(), silent():
        place = located("minilm")
        inner = transformers.AutoModelForSequenceClassification.from_pretrained(
            place, num_labels=2, dtype=torch.float32
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    made = Pretrained(inner.eval(), traits(inner, tokenizer, "minilm"))
    tokeniser = SubwordTokeniser(tokenizer, SubwordOptions(500))
    _learn(made, tokeniser)
    return made.eval(), tokeniser


def _learn(model: Pretrained, tokeniser: SubwordTokeniser) -> None:
    rows, _ = tokenise(PLANTED["planted:majority"](0).train[: STEPS * ROWS], tokeniser, 500)
    model.embedding.requires_grad_(False)  # most of all weights, and most words do not occur
    optimiser = torch.optim.AdamW([part for part in model.parameters() if part.requires_grad], RATE)
    for group in shuffled(torch.tensor([len(row.ids) for row in rows]).numpy(), ROWS, [0]):
        batch = collate([rows[place] for place in group])
        loss = nn.functional.cross_entropy(model(model.embed(batch), batch).logits, batch.labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def batches(model: Pretrained, tokeniser: SubwordTokeniser, sentences: Sequence[str] = SENTENCES) -> list[Batch]:
    """Each sentence by itself, labelled with what the model says of it."""
    rows, _ = tokenise([Example(text, 0) for text in sentences], tokeniser, 500)
    found = []
    for row in rows:
        batch = collate([row])
        with torch.no_grad():
            labels = model(model.embed(batch), batch).logits.argmax(-1)
        found.append(Batch(batch.ids, batch.mask, labels, subwords=batch.subwords))
    return found

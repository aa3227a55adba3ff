"""A transformer whose weights are set, not trained: one of its heads attends to governors by construction."""

from __future__ import annotations

import math
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from assay.models.hf_models import Attentive, traits
from assay.models.hf_subwords import SubwordOptions, SubwordTokeniser
from tests.probes.planted_grammar import COLOURS, NOUNS, PARTICLES, VERBS

LAYERS, HEADS, SIZE = 2, 4, 12
LAYER, HEAD = 1, 2  # the one that attends to governors
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
KINDS = (*(f"noun {colour}" for colour in COLOURS), *(f"verb {colour}" for colour in COLOURS), "particle", "special")
WIDTH = HEADS * SIZE // 2  # of one half of a state; the other half is its negative
IDENTITY = WIDTH - len(KINDS) - 2
POSITIONS = 64
MATCH, NEAR = (
    10_000.0,
    2_000.0,
)  # a matching verb outweighs any distance; a position nearer is worth a factor of e² or more


def kinds() -> dict[str, str]:
    """What each word is."""
    words = dict.fromkeys(SPECIALS, "special") | dict.fromkeys(PARTICLES, "particle")
    for colour in COLOURS:
        words |= dict.fromkeys(NOUNS[colour], f"noun {colour}")
        words |= dict.fromkeys(VERBS[colour], f"verb {colour}")
    return words


def tokenizer() -> Any:
    vocabulary = {word: number for number, word in enumerate(kinds())}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIALS, strict=True))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=POSITIONS, **names)


def planted(seed: int = 0) -> tuple[Attentive, SubwordTokeniser]:
    """The transformer and its tokeniser.

    A state is a vector beside its negative, made of what the word is, which word it is and where it stands, each of
    length 1: its mean is 0 and its variance is the same everywhere, so layer norms only scale it, and nothing is ever
    added to it.
    """
    generator = torch.Generator().manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(kinds()), hidden_size=2 * WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=4, max_position_embeddings=POSITIONS, pad_token_id=0,
    )  # fmt: skip
    inner = transformers.BertModel(config, add_pooling_layer=False).double().eval()
    with torch.no_grad():
        _embed(inner.embeddings, generator)
        scale = math.sqrt(WIDTH / 3)  # a layer norm divides by the root of the mean square
        for number, layer in enumerate(inner.encoder.layer):
            for part in (layer.attention.output.dense, layer.intermediate.dense, layer.output.dense):
                part.weight.zero_()
                part.bias.zero_()
            for part in (layer.attention.self.query, layer.attention.self.key):
                part.weight.copy_(torch.randn(part.weight.shape, generator=generator, dtype=torch.float64) * 0.7)
                part.bias.zero_()
            if number == LAYER:
                _govern(layer.attention.self, scale)
    found = traits(inner, tokenizer(), "planted")
    network = Attentive(inner, found, 2).double().eval()
    return network, SubwordTokeniser(tokenizer(), SubwordOptions(longest=POSITIONS - 3))


def _embed(embeddings: Any, generator: torch.Generator) -> None:
    names = list(kinds().values())
    kind = torch.eye(len(KINDS), dtype=torch.float64)[[KINDS.index(name) for name in names]]
    own = torch.randn(len(names), IDENTITY, generator=generator, dtype=torch.float64)
    own = own / own.norm(dim=1, keepdim=True)
    words = torch.cat([kind, own, torch.zeros(len(names), 2, dtype=torch.float64)], dim=1)
    embeddings.word_embeddings.weight.copy_(torch.cat([words, -words], dim=1))
    angle = torch.arange(POSITIONS, dtype=torch.float64) * math.pi / POSITIONS
    positions = torch.zeros(POSITIONS, WIDTH, dtype=torch.float64)
    positions[:, -2], positions[:, -1] = angle.cos(), angle.sin()
    embeddings.position_embeddings.weight.copy_(torch.cat([positions, -positions], dim=1))
    embeddings.token_type_embeddings.weight.zero_()


def _govern(attention: Any, scale: float) -> None:
    """Sets the head: a noun looks for the verb of its colour, and everybody for who is near."""
    rows = slice(HEAD * SIZE, (HEAD + 1) * SIZE)
    query, key = (torch.zeros(SIZE, 2 * WIDTH, dtype=torch.float64) for _ in range(2))
    for number, colour in enumerate(COLOURS):
        query[number, KINDS.index(f"noun {colour}")] = math.sqrt(MATCH)
        key[number, KINDS.index(f"verb {colour}")] = math.sqrt(MATCH)
    for number in range(2):
        query[len(COLOURS) + number, WIDTH - 2 + number] = math.sqrt(NEAR)
        key[len(COLOURS) + number, WIDTH - 2 + number] = math.sqrt(NEAR)
    factor = SIZE**0.25 / scale  # undoes the layer norm and the division by the root of the size
    attention.query.weight[rows] = query * factor
    attention.key.weight[rows] = key * factor

"""Tiny random transformers of every architecture, and texts for them: nothing is fetched."""

from __future__ import annotations

import string
from functools import cache
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from assay.data.batches import collate, tokenise
from assay.data.examples import Example
from assay.models.hf_attention import quiet
from assay.models.hf_body import Body
from assay.models.hf_models import Attentive, Pretrained, SubwordPretrained, traits
from assay.models.hf_subwords import SubwordOptions, SubwordTokeniser
from assay.types import Batch

WORDS = (
    "good",
    "bad",
    "film",
    "not",
    "a",
    "very",
    "is",
    "this",
    "watch",
    "able",
    "the",
    "long",
    "un",
    "dull",
    "fun",
    "it",
)
SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "cls_token_id": 2,
    "sep_token_id": 3,
}
EDITABLE = (
    *("bert", "roberta", "distilbert", "electra", "albert", "modernbert", "xlm-roberta", "camembert"),
    *("gpt2", "llama", "qwen2"),
)
CLOSED = ("deberta", "deberta-v2", "mpnet")
"""Architectures whose attention cannot be edited."""

ARCHITECTURES = (*EDITABLE, *CLOSED)
CAUSAL = ("gpt2", "llama", "qwen2")
TYPED = ("bert", "electra", "albert")
"""Architectures whose tokenizers tell the first text of a pair from the second."""


@cache
def tokenizer(architecture: str | None = None) -> Any:
    """A small fast tokenizer: some words are whole, all others fall into letters."""
    subwords = [
        *SPECIALS,
        *WORDS,
        *string.ascii_lowercase[1:],
        *(f"##{letter}" for letter in string.ascii_lowercase),
        "##able",
        ",",
        ".",
        "!",
        "?",
    ]
    vocabulary = {subword: number for number, subword in enumerate(dict.fromkeys(subwords))}
    inner = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIALS, strict=True))
    given = ["input_ids", "attention_mask", *(["token_type_ids"] if architecture in TYPED else [])]
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, model_max_length=64, model_input_names=given, **names
    )


def tokeniser(words: bool = True) -> SubwordTokeniser:
    return SubwordTokeniser(tokenizer(), SubwordOptions(longest=60, words=words))


def configuration(architecture: str, classes: int = 3, **options: Any) -> Any:
    """A small configuration of the architecture."""
    vocabulary = len(tokenizer())
    given = {**SMALL, "vocab_size": vocabulary, "num_labels": classes, "type_vocab_size": 2, **options}
    if architecture in ("llama", "qwen2"):
        given |= {"num_key_value_heads": 2, "tie_word_embeddings": False}
    if architecture == "albert":
        given |= {"embedding_size": 8}
    if architecture == "electra":
        given |= {"embedding_size": 16}
    if architecture == "modernbert":
        given |= {"local_attention": 4, "global_attn_every_n_layers": 2}
    if architecture == "distilbert":
        given |= {"dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 4}
    if architecture == "gpt2":
        given |= {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 64}
    return transformers.AutoConfig.for_model(architecture, **given)


def inner(
    architecture: str, classes: int = 3, seed: int = 0, dtype: torch.dtype = torch.float64, **options: Any
) -> Any:
    """A random classifier of the library, sharp enough that its attention is not flat."""
    torch.manual_seed(seed)
    with quiet():
        made = transformers.AutoModelForSequenceClassification.from_config(
            configuration(architecture, classes, **options)
        )
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4.0)
    return made.to(dtype).eval()


def pretrained(
    architecture: str, classes: int = 3, words: bool = True, dtype: torch.dtype = torch.float64, **options: Any
) -> Pretrained:
    """The classifier as assay reads it."""
    made = inner(architecture, classes, dtype=dtype, **options)
    return (Pretrained if words else SubwordPretrained)(made, traits(made, tokenizer(architecture), architecture))


def attentive(architecture: str = "bert", classes: int = 3, dtype: torch.dtype = torch.float64) -> Attentive:
    """Attention over the words of a random encoder."""
    torch.manual_seed(0)
    with quiet():
        made = transformers.AutoModel.from_config(configuration(architecture, classes)).to(dtype).eval()
    network = Attentive(made, traits(made, tokenizer(architecture), architecture), classes).to(dtype).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3.0)
    return network


TEXTS = (
    "This is not a good film, is it?",
    "Dull!",
    "A very unwatchable film",
    "It is long, very long, not fun. A bad film, unable to be fun.",
)


def batch(texts: tuple[str, ...] = TEXTS, words: bool = True, queries: tuple[str, ...] | None = None) -> Batch:
    """The texts, with a question each where there are any."""
    asked = queries or (None,) * len(texts)
    examples = [
        Example(text, place % 2, query=query) for place, (text, query) in enumerate(zip(texts, asked, strict=True))
    ]
    rows, skipped = tokenise(examples, tokeniser(words), 60)
    assert not skipped
    return collate(rows, 3)


__all__ = [
    "ARCHITECTURES",
    "CAUSAL",
    "CLOSED",
    "EDITABLE",
    "TEXTS",
    "TYPED",
    "Body",
    "attentive",
    "batch",
    "inner",
    "pretrained",
    "tokeniser",
    "tokenizer",
]

"""inseq explains generation, ours explains classifiers; they meet where a classifier says which word comes next.

A GPT-2 of random weights reads the texts; the classes are its words, so the same numbers are explained on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

from benchmarks.beside.turns import Scores, Text, Way, read

NEXT, NODES = "driver", 50
METHODS: dict[str, tuple[str, dict[str, int]]] = {
    "gradient": ("saliency", {}),
    "integrated": ("integrated_gradients", {"n_steps": NODES}),
}


def tokenizer(folder: Path) -> Any:
    """A number for each word of the texts."""
    split = pre_tokenizers.Whitespace()
    words = sorted({word for text in read(folder) for word, _ in split.pre_tokenize_str(text.words)})
    numbers = {word: number for number, word in enumerate(("<pad>", "<end>", "<unknown>", *words))}
    inner = Tokenizer(models.WordLevel(numbers, unk_token="<unknown>"))
    inner.pre_tokenizer = split
    marks = {"pad_token": "<pad>", "eos_token": "<end>", "bos_token": "<end>", "unk_token": "<unknown>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **marks)


def language(words: Any) -> Any:
    """A language model of six layers, as wide as MiniLM."""
    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    sizes = {"n_embd": 384, "n_layer": 6, "n_head": 12}
    marks = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(words), **sizes, **marks)).eval()


def ours(name: str) -> Callable[[Path], Way]:
    """The language model with its words as classes."""

    def begun(folder: Path) -> Way:
        from assay.data.batches import collate, tokenise
        from assay.data.examples import Example
        from assay.explainers.gradients import gradient_norm
        from assay.explainers.integrated import IntegratedGradients
        from assay.models.hf_loading import wrapped

        words = tokenizer(folder)
        whole = language(words)
        classes = {number: str(number) for number in range(len(words))}
        config = transformers.GPT2Config(**(whole.config.to_dict() | {"id2label": classes}))
        inner = transformers.GPT2ForSequenceClassification(config).eval()
        inner.transformer = whole.transformer
        inner.score.weight = whole.lm_head.weight
        made = wrapped(inner, words)
        path = IntegratedGradients(nodes=NODES - 1, tolerance=1e9)
        explainer = {"gradient": gradient_norm, "integrated": path}[name]

        def run(texts: Sequence[Text]) -> Scores:
            rows, _ = tokenise([Example(text.words, 0) for text in texts], made.tokeniser, 500)
            target = torch.full((len(texts),), words(NEXT).input_ids[0])
            scores: Scores = explainer(made.network, collate(rows), target).tolist()
            return scores

        return run

    return begun


def inseq(name: str) -> Callable[[Path], Way]:
    """The same word, forced."""

    def begun(folder: Path) -> Way:
        import inseq as library

        words = tokenizer(folder)
        method, options = {"gradient": ("saliency", {}), "integrated": ("integrated_gradients", {"n_steps": NODES})}[
            name
        ]
        model = library.load_model(language(words), method, tokenizer=words)

        def run(texts: Sequence[Text]) -> Scores:
            given = [text.words for text in texts]
            forced = [f"{text} {NEXT}" for text in given]
            found = model.attribute(given, forced, show_progress=False, **options).sequence_attributions
            parts = [each.target_attributions[:-1, -1] for each in found]
            return [(part.norm(dim=-1) if name == "gradient" else part.sum(-1)).tolist() for part in parts]

        return run

    return begun


WAYS = {
    "gradient": ours("gradient"),
    "integrated": ours("integrated"),
    "inseq_gradient": inseq("gradient"),
    "inseq_integrated": inseq("integrated"),
}

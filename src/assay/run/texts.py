"""Texts as a person gives them: one in the words that a model reads, or those that a model learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.data.batches import Tokenised, tokenise
from assay.data.cloze import candidates, is_cloze
from assay.data.examples import Corpus, Example
from assay.errors import AssayError
from assay.models.recipes import fingerprint
from assay.models.store import Opened


def read(model: Opened, text: Any, query: str | None) -> Tokenised:
    """The text in word ids; one that the model cannot read is refused in one sentence."""
    text = one_text(text)
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text + (query or "")):  # bytes that were no UTF-8
        raise AssayError("The text is not UTF-8; convert it first.")
    if query is not None and not model.network.paired:
        raise AssayError("This model reads one text; leave the question out.")
    longest = model.tokeniser.options.longest
    rows, skipped = tokenise([_example(text, query, model.classes)], model.tokeniser, longest)
    if not rows:
        (reason,) = skipped
        advice = "give another one, or add --truncate" if "subwords" in reason else "give another one"
        much = reason.replace("more than", "more than the") + " that this model reads" * (reason != "no words")
        raise AssayError(f"The text has {much}; {advice}.")
    return rows[0]


def one_text(text: Any) -> str:
    """The text; several at once, or something else, are refused."""
    if not isinstance(text, str):
        raise AssayError(f"One text at a time, as a str, not {type(text).__name__}; call it for each of several.")
    return text


def _example(text: str, query: str | None, classes: Sequence[str]) -> Example:
    """The text without a known class; of a cloze question, with the entities that it names as candidates."""
    return Example(text, 0, query=query, candidates=candidates(text, classes) if is_cloze(classes) else None)


def check_learnt(model: Opened, corpus: Corpus) -> None:
    """Refuses a corpus that a model which was made here did not learn from; of others it is taken on trust."""
    known = model.history.get("data")
    if known is not None and known != fingerprint((*corpus.train, *corpus.dev)):
        name = model.history.get("corpus", "another corpus")
        raise AssayError(
            f"The model learnt from {name}, and from other texts than these; name the same corpus or file, with "
            "the same --train-limit, --joined, --parted and --seed as in the training."
        )

"""Corpora with human rationales: words that people marked as decisive."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from assay.data.examples import Corpus, Example, Span
from assay.data.sources import needed_copy
from assay.data.splits import train_dev_test
from assay.data.tables import read_rows

ATTITUDES = ("hatespeech", "normal", "offensive")
HATEXPLAIN = "hatexplain/hatexplain.jsonl.gz"

SENTIMENTS = ("negative", "positive")
SENTIMENT_CODES = {"NEG": 0, "POS": 1}
DOCUMENTS = "eraser_movies/docs.jsonl.gz"
MOVIES = (DOCUMENTS, *(f"eraser_movies/{split}.jsonl.gz" for split in ("train", "val", "test")))

RELATIONS = ("contradiction", "entailment", "neutral")
SNLI = ("snli/train.tsv.gz", "snli/dev.tsv.gz")
HIGHLIGHTS = "esnli/highlights_subset.jsonl.gz"
TAUGHT = 30_000  # pairs to train on: more of them takes long and teaches a small model little

REPORTS = ("unrelated", "adverse")
ADE = "ade_corpus_v2/ade.tsv.gz"


def hatexplain() -> Corpus:
    """Posts in the official split (Mathew et al. 2021); evidence is marked by at least half of the annotators.

    Normal posts have none. Posts on which three annotators gave three labels are left out.
    """
    rows = read_rows(needed_copy(HATEXPLAIN, "hatexplain"), "split", "label", "tokens", "rationales")
    train, dev, test = (
        tuple(post(tokens, label, masks) for split, label, tokens, masks in rows if split == name)
        for name in ("train", "val", "test")
    )
    undecided = sum(not split for split, *_ in rows)
    return Corpus("hatexplain", ATTITUDES, train, dev, test, {"annotators undecided": undecided})


def post(tokens: Sequence[str], label: str, masks: Sequence[Sequence[int]]) -> Example:
    """One post; a mask of another length than the post is left out."""
    fitting = [mask for mask in masks if len(mask) == len(tokens)]
    votes = [sum(marks) for marks in zip(*fitting, strict=True)]
    evidence = None if label == "normal" else chosen(token_spans(tokens), votes, len(fitting))
    return Example(" ".join(tokens), ATTITUDES.index(label), evidence)


def movies() -> Corpus:
    """Film reviews in the split of ERASER (Zaidan and Eisner 2008; DeYoung et al. 2020) with all marked spans."""
    documents, *splits = (needed_copy(file, "movies") for file in MOVIES)
    texts: dict[str, str] = dict(read_rows(documents, "docid", "document"))
    train, dev, test = (
        tuple(review(texts[name], label, groups) for name, label, groups in read_rows(path, *COLUMNS))
        for path in splits
    )
    return Corpus("movies", SENTIMENTS, train, dev, test)


COLUMNS = ("annotation_id", "classification", "evidences")


def review(text: str, label: str, groups: Sequence[Sequence[Mapping[str, Any]]]) -> Example:
    """One review; its words stand between white space, and spans count words."""
    tokens = text.split()
    spans = token_spans(tokens)
    marked = sorted(
        {(spans[mark["start_token"]][0], spans[mark["end_token"] - 1][1]) for group in groups for mark in group}
    )
    return Example(" ".join(tokens), SENTIMENT_CODES[label], tuple(marked))


def ade() -> Corpus:
    """Sentences of case reports, with an adverse drug effect or not (Gurulingappa et al. 2012), in a split of ours.

    The evidence of the first kind is each effect and each drug; the second kind has none.
    """
    rows = read_rows(needed_copy(ADE, "ade"), "text", "label", "effects", "drugs")
    return Corpus("ade", REPORTS, *train_dev_test([report(*row) for row in rows]))


def report(text: str, label: str, *marked: str) -> Example:
    """One sentence; what is marked has bars between its parts, and is marked wherever it occurs."""
    names = {name.strip() for names in marked for name in names.split("||") if name.strip()}
    found = {match.span() for name in names for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)}
    return Example(text, int(label), tuple(sorted(found)) if names else None)


def esnli() -> Corpus:
    """Premise and hypothesis, one a line, of pairs that people highlighted (Camburu et al. 2018); SNLI to train on.

    No pair with highlights is trained on or chosen by. Most of those with highlights are entailments.
    """
    train_copy, dev_copy = (needed_copy(file, "esnli") for file in SNLI)
    names = ("pairID", "gold_label", "premise_tokens", "hypothesis_tokens", "annotations")
    highlighted = read_rows(needed_copy(HIGHLIGHTS, "esnli"), *names)
    held = {name for name, *_ in highlighted}
    train, dev = (
        tuple(pairs(read_rows(path, "pairID", "gold_label", "premise", "hypothesis"), held))
        for path in (train_copy, dev_copy)
    )
    test = tuple(highlight(*row) for _, *row in highlighted)
    return Corpus("esnli", RELATIONS, train[:TAUGHT], dev, test)


def pairs(rows: Sequence[tuple[str, ...]], held: Collection[str]) -> Iterator[Example]:
    """The pairs that have a label and are not held out, each as one text."""
    for name, label, premise, hypothesis in rows:
        if label in RELATIONS and name not in held:
            yield Example(f"{premise}\n{hypothesis}", RELATIONS.index(label))


def highlight(
    label: str, premise: Sequence[str], hypothesis: Sequence[str], annotations: Sequence[Mapping[str, Any]]
) -> Example:
    """One pair as one text; the evidence is what half of its annotators or more highlighted."""
    both = {"premise_highlight": 0, "hypothesis_highlight": len(premise)}
    votes = [0] * (len(premise) + len(hypothesis))
    for annotation in annotations:
        for side, offset in both.items():
            for index in set(annotation[side]):
                votes[offset + index] += 1
    text = f"{' '.join(premise)}\n{' '.join(hypothesis)}"
    spans = token_spans([*premise, *hypothesis])  # a line break is as long as a space
    return Example(text, RELATIONS.index(label), chosen(spans, votes, len(annotations)))


def token_spans(tokens: Sequence[str]) -> list[Span]:
    """The span of each token when joined by single characters."""
    ends = [end - 1 for end in accumulate(len(token) + 1 for token in tokens)]
    return [(end - len(token), end) for token, end in zip(tokens, ends, strict=True)]


def chosen(spans: Sequence[Span], votes: Sequence[int], voters: int) -> tuple[Span, ...]:
    """The spans with votes from at least half of the voters."""
    return tuple(span for span, count in zip(spans, votes, strict=True) if count and 2 * count >= voters)

"""lime's explainer of texts; words that it removes are masked, for a text is one string to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lime.lime_text import LimeTextExplainer

from benchmarks.beside.plainly import Plain, counted
from benchmarks.beside.turns import Scores, Text, Way

__all__ = ["WAYS", "counted"]

SAMPLES = 256


def lime(folder: Path) -> Way:
    plain = Plain(folder)
    explainer = LimeTextExplainer(
        split_expression=" ", bow=False, mask_string=plain.tokenizer.mask_token, random_state=0
    )

    def explained(text: Text) -> list[float]:
        pieces = plain.tokenizer.tokenize(text.words)
        found = explainer.explain_instance(
            " ".join(pieces),
            lambda texts: plain.read(texts).numpy(),
            labels=[text.label],
            num_features=len(pieces),
            num_samples=SAMPLES,
        )
        return [score for _, score in sorted(found.as_map()[text.label])]

    def run(texts: Sequence[Text]) -> Scores:
        return [explained(text) for text in texts]

    return run


WAYS = {"lime": lime}

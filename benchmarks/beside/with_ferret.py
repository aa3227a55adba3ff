"""ferret's explainers and its evaluation, in an environment of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from ferret import Benchmark, GradientExplainer, IntegratedGradientExplainer, LIMEExplainer, SHAPExplainer
from ferret.explainers.explanation import Explanation

from benchmarks.beside.plainly import Plain, counted
from benchmarks.beside.turns import Scores, Text, Way

__all__ = ["WAYS", "counted"]


def explained(kind: Callable[..., object], **options: object) -> Callable[[Path], Way]:
    def begun(folder: Path) -> Way:
        plain = Plain(folder)
        explainer = kind(plain.model, plain.tokenizer, **options)

        def run(texts: Sequence[Text]) -> Scores:
            return [explainer(text.words, text.label).scores[1:-1].tolist() for text in texts]  # type: ignore[operator]

        return run

    return begun


def judged(folder: Path) -> Way:
    """Comprehensiveness, sufficiency and τ with leave-one-out, of each of the given scores."""
    plain = Plain(folder)
    bench = Benchmark(plain.model, plain.tokenizer)

    def numbers(text: Text) -> list[float]:
        tokens = plain.tokenizer.convert_ids_to_tokens(plain.ids([text])[0])
        given = [
            Explanation(text.words, tokens, np.array([0.0, *scores, 0.0]), str(place), text.label)
            for place, scores in enumerate(text.given)
        ]
        found = bench.evaluate_explanations(given, target=text.label, show_progress=False)
        return [float(score.score) for each in found for score in each.evaluation_scores]

    def run(texts: Sequence[Text]) -> Scores:
        return [numbers(text) for text in texts]

    return run


WAYS = {
    "gradient": explained(GradientExplainer, multiply_by_inputs=False),
    "input_x_gradient": explained(GradientExplainer, multiply_by_inputs=True),
    "integrated": explained(IntegratedGradientExplainer, multiply_by_inputs=True),
    "lime": explained(LIMEExplainer),
    "shap": explained(SHAPExplainer),
    "judged": judged,
}

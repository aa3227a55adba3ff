"""One text, explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich.console import Group
from rich.text import Text

from assay.data.batches import collate, tokenise
from assay.data.examples import Example, Span
from assay.errors import AssayError
from assay.models.store import Trained
from assay.run.plan import AuditPlan


@dataclass(frozen=True)
class Explanation:
    """A prediction, and the score of each word under each explainer."""

    text: str
    spans: list[Span]
    predicted: str
    probabilities: dict[str, float]
    scores: dict[str, list[float]]

    @property
    def words(self) -> list[str]:
        return [self.text[start:end] for start, end in self.spans]

    def json(self) -> dict[str, Any]:
        return asdict(self) | {"words": self.words}

    def __rich__(self) -> Group:
        from assay.report.heatmaps import terminal

        starts, ends = [start for start, _ in self.spans], [end for _, end in self.spans]
        lines = [Text.assemble((self.predicted, "bold"), f"  {self.probabilities[self.predicted]:.1%}")]
        for name, scores in self.scores.items():
            lines += [Text(f"\n{name}", style="dim"), terminal(self.text, starts, ends, scores)]
        return Group(*lines)

    def __str__(self) -> str:
        """The decision and a row of scores for each word: for where there are no colours."""
        width = max(4, *map(len, self.words))
        head = f"{self.predicted} ({self.probabilities[self.predicted]:.1%})"
        titles = "  ".join([" " * width, *self.scores])
        rows = [
            "  ".join([word.ljust(width), *(f"{scores[place]:{len(name)}.4f}" for name, scores in self.scores.items())])
            for place, word in enumerate(self.words)
        ]
        return "\n".join([head, titles, *rows])


def explain(model: Trained, text: str, explainers: Sequence[str], seed: int = 0) -> Explanation:
    """The model's decision on the text, explained for the predicted class."""
    plan = AuditPlan(explainers=tuple(explainers), seed=seed)
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text):  # bytes of a shell that were no UTF-8
        raise AssayError("The text is not UTF-8; convert it first.")
    longest = model.tokeniser.options.longest
    rows, skipped = tokenise([Example(text, 0)], model.tokeniser, longest)
    if not rows:
        reason = (
            "has no words" if "no words" in skipped else f"has more than the {longest:,} words that this model reads"
        )
        raise AssayError(f"The text {reason}; give another one.")
    batch = collate(rows).to(model.device)
    network = model.network
    with torch.no_grad():
        probabilities = network(network.embed(batch), batch).probabilities
    target = probabilities.argmax(-1)
    return Explanation(
        text=text,
        spans=[(start, end) for start, end in rows[0].spans.tolist()],
        predicted=model.classes[int(target)],
        probabilities=dict(zip(model.classes, probabilities[0].tolist(), strict=True)),
        scores={
            name: explainer(network, batch, target)[0].tolist() for name, explainer in plan.chosen_explainers().items()
        },
    )

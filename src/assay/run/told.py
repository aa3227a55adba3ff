"""What a model did with one text, as plain values that a page can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.data.examples import Example, Span
from assay.models.store import Opened
from assay.rationales.measuring import Selected


@dataclass(frozen=True)
class Told:
    """A model, and the texts that rows were made of, each with its number in the corpus."""

    model: Opened
    texts: Sequence[tuple[int, Example]]

    def text(self, each: Selected) -> dict[str, Any]:
        """One decision, and the characters that were read for it; of pairs also what was aligned with what."""
        number, example = self.texts[each.row.index]
        classes = self.model.classes
        found = {
            "text": number,
            "label": classes[each.row.label],
            "predicted": classes[each.predicted],
            "probability": round(float(each.probabilities.max()), 6),
            "selected": each.row.spans[each.kept].tolist(),
        }
        if "aligned" in each.account:
            asked, spans = self._asked(example), each.row.spans.tolist()
            found["aligned"] = [[spans[pair["word"]], list(asked[pair["asked"]])] for pair in each.account["aligned"]]
        return found

    def example(self, each: Selected) -> dict[str, Any]:
        """The same with the text itself, and with all that the model tells of its decision."""
        number, example = self.texts[each.row.index]
        return (
            self.text(each)
            | {
                "text": example.text,
                "number": number,
                "query": example.query,
                "starts": each.row.spans[:, 0].tolist(),
                "ends": each.row.spans[:, 1].tolist(),
                "kept": each.kept.tolist(),
                "chance": [round(chance, 4) for chance in each.chance.tolist()],
                "marked": None if each.row.truth is None else each.row.truth.tolist(),
            }
            | self._account(each, example)
        )

    def _account(self, each: Selected, example: Example) -> dict[str, Any]:
        if "aligned" in each.account:
            return self._pairs(each, example)
        return {"account": self._phrases(each, example)} if "phrases" in each.account else {}

    def _pairs(self, each: Selected, example: Example) -> dict[str, Any]:
        """The words of the query, as those of the text are told of, and the pairs."""
        asked, truth = self._asked(example), each.row.query_truth
        pairs = sorted(each.account["aligned"], key=lambda pair: -max(pair["votes"]))  # the one that says most first
        met = {pair["asked"] for pair in pairs}
        return {
            "asked": {
                "starts": [start for start, _ in asked],
                "ends": [end for _, end in asked],
                "kept": [place in met for place in range(len(asked))],
                "marked": None if truth is None else truth.tolist(),
            },
            "pairs": [pair | {"votes": [round(vote, 4) for vote in pair["votes"]]} for pair in pairs],
        }

    def _phrases(self, each: Selected, example: Example) -> dict[str, Any]:
        """What the parts of an answer say for it, with phrases as they are written."""
        words, account = each.row.spans.tolist(), each.account
        return {
            "parts": {name: round(by, 4) for name, by in account["parts"].items()},
            "phrases": [
                {"text": example.text[words[said["start"]][0] : words[said["stop"] - 1][1]], "by": round(said["by"], 4)}
                for said in account["phrases"]
            ],
            "stored": [said | {"by": round(said["by"], 4)} for said in account["stored"]],
        }

    def _asked(self, example: Example) -> list[Span]:
        """Where the words of the query stand in it."""
        return self.model.tokeniser.query([example.query or ""])[0].spans

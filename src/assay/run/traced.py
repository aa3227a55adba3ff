"""The verbs that trace decisions back to training texts, as functions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.data import corpora
from assay.data.examples import Corpus
from assay.models.store import Opened
from assay.run import influencing
from assay.run.background import Background
from assay.run.influencing import AUTOMATIC
from assay.run.verbs import load


@dataclass(frozen=True)
class Traced:
    """What was found among training texts, as plain numbers and words; printed, it tells the finding."""

    answer: dict[str, Any]

    def report(self, path: str | Path) -> Path:
        """Writes the page, or its Markdown, PDF or JSON, as the name ends in."""
        from assay.influence.page import document
        from assay.report.save import save

        save(document(self.answer), Path(path))
        return Path(path)

    def __str__(self) -> str:
        from assay.influence.page import headline

        rows = [
            f"{each['score']:+10.3g}  {each['label']}  {each['text']}"
            for kind in ("supporting", "opposing", "suspects")
            for each in self.answer.get(kind, ())
        ]
        return "\n".join([f"{headline(self.answer)}.", *rows])


def influential(
    model: Opened | str | Path,
    text: str,
    corpus: Corpus | str,
    query: str | None = None,
    method: str = AUTOMATIC,
    target: str = "margin",
    asked: str | None = None,
    top: int = 5,
    tokens: int = 1,
) -> Traced:
    """The texts of the corpus that the model learnt from which made it decide so, and those that speak against it.

    A score is the predicted change of the target of the class, the predicted one or the one that is `asked` about, if
    the model had learnt without that text.
    """
    found = influencing.influential(_background(model, corpus), text, query, method, target, asked, top, tokens)
    return Traced(found | {"command": "assay.influential(...) in Python"})


def mislabelled(model: Opened | str | Path, corpus: Corpus | str, method: str = AUTOMATIC, top: int = 50) -> Traced:
    """The training texts whose label the model holds most against."""
    found = influencing.suspects(_background(model, corpus), method, top)
    return Traced(found | {"command": "assay.mislabelled(...) in Python"})


def _background(model: Opened | str | Path, corpus: Corpus | str) -> Background:
    opened = load(model) if isinstance(model, str | Path) else model
    return Background.of(opened, corpora.corpus(corpus) if isinstance(corpus, str) else corpus)

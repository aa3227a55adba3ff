"""Studies that are over in a moment: sixty texts, and models that learn next to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assay.study.attempts import Outcome, attempt
from assay.study.plans import StudyPlan, plan_of
from assay.study.trials import FILES, AuditSet, Kind, Source, Trial

PLAN = """
corpora = ["texts.csv"]
seeds = [0, 1]

[models.average]
encoder = "average"
embedding = 4
hidden = 4
epochs = 1

[audits]
explainers = ["attention", "random"]
audits = ["agreement"]
limit = 4
"""


def texts(path: Path, rows: int = 60, labels: tuple[str, ...] = ("no", "yes")) -> Path:
    """A csv file in which one word tells the class."""
    words = ["dull", "fine"]
    lines = [f"text {row % 17} is {words[row % 2]} in row {row},{labels[row % len(labels)]}" for row in range(rows)]
    path.write_text("\n".join(["text,label", *lines]) + "\n")
    return path


def planned(folder: Path, text: str = PLAN) -> Path:
    """The file of a small plan, beside its texts."""
    texts(folder / "texts.csv")
    (folder / "small.toml").write_text(text)
    return folder / "small.toml"


def grid(**changes: object) -> StudyPlan:
    """A plan whose trials are not meant to be made."""
    return plan_of({"corpora": ["planted:keyword"], "models": {"lstm": {"hidden": 8}}, **changes})


def trial(seed: int = 0) -> Trial:
    return Trial(Source("planted:keyword"), Kind("lstm"), seed, AuditSet("audits", ("random",), ("agreement",)))


def files(content: str = "held") -> dict[str, bytes]:
    """What could be a result, for whoever only keeps it."""
    return {name: f"{content} in {name}".encode() for name in FILES}


def here(trials: Iterator[Trial], place: Path) -> Iterator[Outcome]:
    """An engine that makes trials one after the other, in this process."""
    for each in trials:
        yield attempt(each, place)

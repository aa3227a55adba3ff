"""What is taught in this study: models by how they learn, and what is asked of them once they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.explainers import EXPLAINERS
from studies.planted.curriculum import ALONE, FACTS, LESSONS, alone, lessons
from studies.planted.lessons import Lesson

CLOSED = "lessons"
"""How the models learn whose other routes are closed; the others are named after their network."""

FEW = (
    "attention", "attention_x_gradient", "attention_x_value", "gradient", "input_x_gradient", "integrated_gradients",
    "lrp", "deeplift", "leave_one_out", "occlusion", "occlusion_mask", "lime", "kernel_shap", "random",
)  # fmt: skip
"""The explainers of networks that learn from a corpus as it is."""

LONG = {"hedge"}  # explainers that take longer on stories than all others together

TEXTS = {**dict.fromkeys(FACTS, 40), "planted:entail": 100}
USUAL_TEXTS = 200  # audited of a test split; fewer of those that take long


@dataclass(frozen=True)
class Subject:
    """One kind of model and what it learns: the best of its candidates is audited on each of its corpora.

    Candidates are tried in turn, and those after one that makes no mistake are not; `at_once` tries all of them
    side by side, where each takes long.
    """

    learns: str
    corpora: tuple[str, ...]
    candidates: Mapping[str, Lesson]
    explainers: tuple[str, ...] = FEW
    audits: tuple[str, ...] = ("truth", "erasure")
    at_once: bool = False

    @property
    def name(self) -> str:
        return f"{self.learns}/{'+'.join(map(title, self.corpora))}"


def title(corpus: str) -> str:
    return corpus.removeprefix("planted:")


def texts(corpus: str) -> int:
    """How many texts of a test split are audited, at most."""
    return TEXTS.get(corpus, USUAL_TEXTS)


def closed(corpora: tuple[str, ...]) -> Subject:
    """A model whose other routes are closed, with every explainer that does not take too long."""
    candidates = lessons(corpora[0])
    explainers = tuple(name for name in EXPLAINERS if corpora != FACTS or name not in LONG)
    audits = ("truth", "shortcut") if corpora == ("planted:shortcut",) else ("truth",)
    return Subject(CLOSED, corpora, candidates, explainers, audits, at_once="large" in candidates)


SUBJECTS: dict[str, Subject] = {
    subject.name: subject
    for subject in (
        closed(FACTS),  # what takes longest comes first
        closed(("planted:entail",)),
        *(closed((name,)) for name in LESSONS if name not in (*FACTS, "planted:entail")),
        *(
            Subject(network, (f"planted:{name}",), alone(network))
            for name in ("negation", "majority", "phrase", "keyword")
            for network in ALONE
        ),
    )
}

"""One text, explained; and hierarchies of its phrases."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from rich.console import Group
from rich.text import Text
from torch import Tensor

from assay import progress
from assay.audits.cases import Case
from assay.audits.deciding import measured
from assay.data import corpora as given
from assay.data.batches import Tokenised, collate, tokenise
from assay.data.examples import Corpus, Span
from assay.errors import AssayError, unknown
from assay.explainers import EXPLAINERS, USUAL
from assay.explainers.baselines import looked_up
from assay.explainers.choice import named
from assay.explainers.phrase_sampling import CARD, Sampler, kept
from assay.explainers.phrase_trees import tree_builders, with_cohesion
from assay.explainers.phrases import TreeBuilder
from assay.models.erasure import Pool
from assay.models.recipes import fingerprint
from assay.models.store import Opened
from assay.records import Record
from assay.report.examples import choose
from assay.run.api import check_learnt, opened_model, read
from assay.run.examination import Instruments, each_once, explained, explainers_of, fitting
from assay.trees import Tree
from assay.types import Attribution, Batch, TokenModel

FOLDER = "language"
WORDS = 300_000  # words of training texts: more take long and teach a small language model little
MOST, LONGEST = 6, 40
"""Texts that are divided into phrases, and the words of the longest: more cannot be drawn, and cost much."""


@dataclass(frozen=True)
class Home:
    """A model's folder, and what it learnt from; that is asked for only if there is no language model in the folder.

    With `named` texts, they are compared with what the model learnt from even then.
    """

    folder: Path | None = None
    corpus: Callable[[], Corpus] | None = None
    named: bool = False

    @classmethod
    def of(cls, model: Any, corpus: Any = None) -> Home:
        """That of a model that is named by its folder, with the texts that it learnt from in any form."""
        folder = Path(model) if isinstance(model, str | Path) and Path(model).is_dir() else None
        return cls(folder, None if corpus is None else lambda: given.corpus(corpus), corpus is not None)


def fitting_trees(
    model: Opened, trees: str | None, scorer: str | None, home: Home | None = None
) -> dict[str, TreeBuilder]:
    """The builders that are named, all of which can serve the model; `home` is where to learn what they need."""
    builders = with_language(tree_builders(trees, scorer), model, home or Home())
    for name, builder in builders.items():
        if (reason := builder.unfit(model.network)) is not None:
            raise AssayError(f"The tree {name!r} cannot be built for this model: {reason}.")
    return builders


def divided(
    model: Opened, rows: Sequence[Tokenised], record: Record, builders: dict[str, TreeBuilder]
) -> list[dict[str, Any]]:
    """For some of the texts that the page shows, the trees of the decision."""
    order = [place for choice in choose(record) for place in choice.rows]
    places = [place for place in order if len(rows[place].ids) <= LONGEST][:MOST]
    found = []
    with progress.bar() as shown:
        for place in shown.track(places, description="phrases"):
            row, told = rows[place], record.examples.slice(place, 1).to_pylist()[0]
            batch = collate([row], len(model.classes)).to(model.device)
            with torch.no_grad():
                target = model.network(model.network.embed(batch), batch).logits.argmax(-1)
            trees = [
                {"name": name} | with_cohesion(build, model.network, batch, target)[0].json()
                for name, build in builders.items()
            ]
            words = [told["text"][start:end] for start, end in zip(told["starts"], told["ends"], strict=True)]
            found.append(
                {
                    "example": told["example"],
                    "words": words,
                    "predicted": model.classes[int(target)],
                    "label": model.classes[row.label],
                    "trees": trees,
                }
            )
    return found


def with_language(builders: Mapping[str, TreeBuilder], model: Opened, home: Home) -> dict[str, TreeBuilder]:
    """The builders, those whose scorers need a language model with one."""
    if not isinstance(model.network, TokenModel) or not any(map(_lacking, builders.values())):
        return dict(builders)
    words = len(model.network.vectors)
    folder = None if home.folder is None else home.folder / FOLDER
    there = folder is not None and (folder / CARD).is_file()
    corpus = _corpus(model, home) if home.named or not there else None
    data = model.history.get("data") if corpus is None else fingerprint((*corpus.train, *corpus.dev))
    language = kept(folder, lambda: _rows(model, corpus), words, data)
    return {name: _spoken(builder, language) if _lacking(builder) else builder for name, builder in builders.items()}


def _lacking(builder: TreeBuilder) -> bool:
    scorer = getattr(builder, "scorer", None)
    return isinstance(scorer, Sampler) and scorer.window > 0 and scorer.language is None


def _spoken(builder: TreeBuilder, language: Any) -> TreeBuilder:
    whole = cast(Any, builder)
    given: TreeBuilder = replace(whole, scorer=replace(whole.scorer, language=language))
    return given


def _corpus(model: Opened, home: Home) -> Corpus:
    if home.corpus is None:
        raise AssayError(
            "Other words around a phrase are written by a language model of the texts that the model learnt from; name "
            "these texts with --corpus."
        )
    corpus = home.corpus()
    check_learnt(model, corpus)
    return corpus


def _rows(model: Opened, corpus: Corpus | None) -> Sequence[Tokenised]:
    """Training texts in the model's words, drawn until there are enough."""
    assert corpus is not None
    rows, _ = tokenise(corpus.train, model.tokeniser, model.tokeniser.options.longest)
    order = np.random.default_rng(0).permutation(len(rows))
    before = np.cumsum([0, *(len(rows[place].ids) for place in order)])[:-1]
    return [rows[place] for place, many in zip(order.tolist(), before.tolist(), strict=True) if many < WORDS]


# One text, explained.


TRUSTED = "trust"
UNTRUSTED = "No trust can be told: with other words in all places the decision is hardly less probable."


@dataclass(frozen=True)
class Explanation:
    """A prediction, and the score of each word under each explainer.

    `notes` are what an explainer says of its own scores, and under `TRUSTED` how likely its highest words hold what
    decides; that is missing where the words of the text hardly decide, and for a class that was not predicted.
    """

    text: str
    query: str | None
    spans: list[Span]
    predicted: str
    probabilities: dict[str, float]
    scores: dict[str, list[float]]
    target: str = ""
    notes: dict[str, dict[str, float]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    trees: dict[str, Tree] = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        return [self.text[start:end] for start, end in self.spans]

    def json(self) -> dict[str, Any]:
        trees = {name: tree.json() for name, tree in self.trees.items()}
        return asdict(replace(self, trees={})) | {"words": self.words, "trees": trees}

    def __rich__(self) -> Group:
        from assay.report import trees
        from assay.report.heatmaps import terminal

        starts, ends = [start for start, _ in self.spans], [end for _, end in self.spans]
        lines = [] if self.query is None else [Text.assemble(("question or hypothesis  ", "dim"), self.query, "\n")]
        lines.append(Text.assemble((self.predicted, "bold"), f"  {self.probabilities[self.predicted]:.1%}"))
        for name, scores in self.scores.items():
            title = Text.assemble(f"\n{name}", f"  {self._note(name)}", style="dim")
            lines += [title, terminal(self.text, starts, ends, scores)]
        for name, tree in self.trees.items():
            lines += [Text(f"\n{name}", style="dim"), trees.lines(tree, self.words)]
        lines += [Text(line, style="dim") for line in self._ending()]
        return Group(*lines)

    def _repr_html_(self) -> str:
        from assay.report import notebook

        return notebook.explanation(self)

    def _note(self, name: str) -> str:
        """What an explainer says of its own scores."""
        return ", ".join(f"{number.replace('_', ' ')} {value:.3g}" for number, value in self.notes[name].items())

    def _ending(self) -> list[str]:
        from assay.grading.grade import TRUST

        asked = [] if self.target == self.predicted else [f"\nThe scores are for the class {self.target}."]
        if any(TRUSTED in numbers for numbers in self.notes.values()):
            asked.append(f"\n{TRUST}")
        elif self.target == self.predicted and self.scores:
            asked.append(f"\n{UNTRUSTED}")
        return asked + [f"{name} is left out: {reason}." for name, reason in self.left_out.items()]

    def __str__(self) -> str:
        """The decision and a row of scores for each word: for where there are no colours."""
        from assay.report import trees

        width = max(4, *map(len, self.words))
        asked = [] if self.query is None else [f"question or hypothesis: {self.query}"]
        head = f"{self.predicted} ({self.probabilities[self.predicted]:.1%})"
        titles = "  ".join([" " * width, *(name.rjust(8) for name in self.scores)])
        rows = [
            "  ".join(
                [
                    word.ljust(width),
                    *(f"{scores[place]:{max(8, len(name))}.4f}" for name, scores in self.scores.items()),
                ]
            )
            for place, word in enumerate(self.words)
        ]
        said = [f"{name}: {self._note(name)}" for name in self.scores if self.notes[name]]
        for name, tree in self.trees.items():
            said += [f"\n{name}", *trees.outline(tree, self.words)]
        return "\n".join([*asked, head, titles, *rows, *said, *self._ending()])


def explain(
    model: Any,
    text: str,
    explainers: Instruments[Any] = USUAL,
    target: str | None = None,
    query: str | None = None,
    tree: str | None = None,
    scorer: str | None = None,
    corpus: Any = None,
    *,
    seed: int = 0,
    home: Home | None = None,
) -> Explanation:
    """The model's decision on one text, explained in several ways, for the target class or else the predicted one.

    A model of pairs takes the query as well: the question or hypothesis that the text is read for. Explainers are
    named, or are functions of a model, a batch and the classes to explain; in a dict, by other names, also arrays of
    one score a word. A tree, such as "hedge", "acd" or "soc", is a hierarchy of phrases; a scorer says what a phrase
    counts, such as "shapley". Some of them need the `corpus` that the model learnt from, once: what they make of it is
    stored in the model's folder, or another `home`.
    """
    opened = opened_model(model)
    names, own = named(_of_one(explainers), EXPLAINERS, "explainer")
    each_once("explainer", names, EXPLAINERS)
    chosen = explainers_of(names, own, seed)
    builders = fitting_trees(opened, tree, scorer, home or Home.of(model, corpus))
    row = read(opened, text, query)
    if target is not None and target not in opened.classes:
        raise unknown("class", target, opened.classes)
    batch, network = collate([row], len(opened.classes)).to(opened.device), opened.network
    with torch.no_grad():
        probabilities = network(network.embed(batch), batch).probabilities
    predicted = opened.classes[int(probabilities.argmax(-1))]
    wanted = batch.labels.new_tensor([opened.classes.index(target or predicted)])
    served, left_out = fitting(looked_up(chosen, [row], [0]), network)
    found = {name: explained(explainer, network, batch, wanted) for name, explainer in served.items()}
    scores = {name: each.scores for name, each in found.items()}
    trust = _trust(opened, batch, scores, seed) if scores and target in (None, predicted) else {}
    return Explanation(
        text=text,
        query=query,
        spans=[(start, end) for start, end in row.spans.tolist()],
        predicted=predicted,
        probabilities=dict(zip(opened.classes, probabilities[0].tolist(), strict=True)),
        scores={name: each[0].tolist() for name, each in scores.items()},
        target=target or predicted,
        notes={name: trust.get(name, {}) | _numbers(each) for name, each in found.items()},
        left_out=left_out,
        trees={name: with_cohesion(builder, network, batch, wanted)[0] for name, builder in builders.items()},
    )


def _of_one(explainers: Instruments[Any]) -> Instruments[Any]:
    """With scores of the one text as those of a list with one text."""
    if not isinstance(explainers, Mapping):
        return explainers
    return {
        name: each if isinstance(each, str) or callable(each) or np.ndim(each) != 1 else [each]
        for name, each in explainers.items()
    }


def _trust(
    model: Opened, batch: Batch, scores: dict[str, Float[Tensor, "1 T"]], seed: int
) -> dict[str, dict[str, float]]:
    """How likely the highest words of each explainer hold what decides, with words of the vocabulary for the others."""
    from assay.grading.grade import of_text

    pool = Pool.of_vocabulary(model).to(model.device)
    if not len(pool):
        return {}
    economies = measured(Case(model.network, batch, scores, seed), pool, seed=seed)["economy"][0]
    pairs = zip(scores, economies.tolist(), strict=True)
    return {name: {TRUSTED: of_text(economy)} for name, economy in pairs if math.isfinite(economy)}


def _numbers(found: Attribution) -> dict[str, float]:
    """What an explainer says of the scores of one text, where there is something to say."""
    return {name: float(value[0]) for name, value in found.numbers.items() if value[0].isfinite()}

"""The page of this study: means over seeds with the range of the seeds, accuracies, and what was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from studies.pages import made_from
from studies.planted.cells import Audited, Taught
from studies.planted.choosing import choice, learnt, missing, tried
from studies.planted.subjects import CLOSED, Subject, title
from studies.results import Result

KINDS = {
    "one word": ("keyword", "shortcut"),
    "words that are counted": ("majority",),
    "words that stand in for one another": ("phrase",),
    "words that decide together": ("negation", "agreement", "entail"),
    "whole sentences": ("facts1", "facts2", "facts3"),
}
"""What decides, and in which corpora."""

BRIEF = ("leave_one_out", "occlusion", "occlusion_sentence", "integrated_gradients", "lrp", "attention", "random")
USUAL = (
    "leave_one_out", "occlusion_mean", "occlusion_sentence", "deeplift", "integrated_gradients", "lrp", "shapley",
    "gradient_norm", "attention", "random",
)  # fmt: skip
"""The explainers of the short tables here, and in docs/choosing.md."""

NETWORKS = {"bilstm": "BiLSTM", "cnn": "CNN", "transformer": "transformer"}
AUPRC, SHOWN, USED, MOVED = "truth.auprc", "shortcut.shown", "shortcut.used", "erasure.comprehensiveness"
NONE, EMPTY = "–", "Nothing has been run yet.\n"
MOVED_HEAD = "comprehensiveness"


@dataclass(frozen=True)
class Column:
    """What the chosen candidate of a subject has on one corpus: a result of each seed, and of each that was audited."""

    head: str
    corpus: str
    taught: Sequence[Result]
    audited: Sequence[Result]

    @property
    def learnt(self) -> list[bool]:
        return [learnt(result, self.corpus) for result in self.taught]

    def values(self, measure: str, explainer: str) -> list[float]:
        """One for each seed whose model has learnt, and whose audit has one."""
        found = (result["measures"].get(measure, {}).get(explainer) for result in self.audited)
        return [value for value in found if value is not None]

    def title(self) -> str:
        if not any(self.learnt):
            return f"{self.head} †"
        return self.head if len(self.audited) == sum(self.learnt) else f"{self.head} ‡"


def page(subjects: Sequence[Subject], seeds: Sequence[int], done: Mapping[str, Result]) -> str:
    """All tables that the finished cells give, as Markdown."""
    if not done:
        return EMPTY
    closed = closed_columns(subjects, seeds, done)
    explainers = max((subject.explainers for subject in subjects if subject.learns == CLOSED), key=len, default=())
    parts = [[made_by(done)], brief(closed), _closed(closed, explainers), _shortcut(closed, explainers)]
    alone = [subject for subject in subjects if subject.learns != CLOSED]
    parts += [_alone(name, alone, seeds, done) for name in dict.fromkeys(s.corpora[0] for s in alone)]
    parts.append(["### What was chosen", "", *chosen(subjects, seeds, done)])
    return "\n".join("\n".join([*part, ""]) for part in parts if part)


def advice(subjects: Sequence[Subject], seeds: Sequence[int], done: Mapping[str, Result]) -> str:
    """The table of docs/choosing.md."""
    shown = closed_columns(subjects, seeds, done)
    return "\n".join([made_by(done), "", *table("AUPRC", shown, USUAL, AUPRC), ""]) if shown else EMPTY


def closed_columns(subjects: Sequence[Subject], seeds: Sequence[int], done: Mapping[str, Result]) -> list[Column]:
    """Of models whose other routes are closed, in the order of what decides."""
    found = [column for subject in subjects if subject.learns == CLOSED for column in columns(subject, seeds, done)]
    order = [head for heads in KINDS.values() for head in heads]
    return sorted(found, key=lambda column: order.index(column.head))


def columns(subject: Subject, seeds: Sequence[int], done: Mapping[str, Result]) -> Iterator[Column]:
    """A column for each corpus of a subject that has a chosen candidate."""
    candidate = choice(subject, seeds, done)
    for corpus in subject.corpora if candidate is not None else ():
        taught = {seed: done[Taught(subject.name, candidate or "", seed).name] for seed in seeds}
        able = [seed for seed, result in taught.items() if learnt(result, corpus)]
        audits = [Audited(subject.name, candidate or "", seed, corpus).name for seed in able]
        head = title(corpus) if subject.learns == CLOSED else NETWORKS[subject.learns]
        yield Column(head, corpus, list(taught.values()), [done[name] for name in audits if name in done])


def table(first: str, shown: Sequence[Column], explainers: Sequence[str], measure: str) -> list[str]:
    """A row for each explainer that fits one of the models, and below how right the models are."""
    held = {name: [column.values(measure, name) for column in shown] for name in explainers}
    rows = {name: values for name, values in held.items() if any(values)}
    tops = [[f"{mean(each[at]):.3f}" for each in rows.values() if each[at]] for at in range(len(shown))]
    best = [max(top, default="") for top in tops]
    lines = [
        [name, *(cell(values, top) for values, top in zip(each, best, strict=True))] for name, each in rows.items()
    ]
    lines += [
        ["*accuracy, dev*", *(cell([each["each"][column.corpus] for each in column.taught]) for column in shown)],
        ["*accuracy, test*", *(cell([each["test"] for each in column.audited]) for column in shown)],
        ["*seeds that learnt*", *(f"{sum(column.learnt)} of {len(column.learnt)}" for column in shown)],
        ["*texts of each seed*", *(str(column.audited[0]["texts"]) if column.audited else NONE for column in shown)],
    ]
    heads = [first, *(column.title() for column in shown)]
    return [f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *lines)]


def brief(shown: Sequence[Column]) -> list[str]:
    """By what decides: the lowest and the highest corpus, each a mean over its seeds."""
    held = {kind: [column for column in shown if column.head in heads] for kind, heads in KINDS.items()}
    held = {kind: found for kind, found in held.items() if any(column.audited for column in found)}
    if not held:
        return []
    lines = [["AUPRC", *held], ["---"] * (len(held) + 1)]
    for name in BRIEF:
        values = [[mean(own) for column in found if (own := column.values(AUPRC, name))] for found in held.values()]
        if any(values):
            lines.append([name, *map(_ends, values)])
    return ["### In short", "", *(f"| {' | '.join(line)} |" for line in lines)]


def _ends(values: Sequence[float]) -> str:
    if not values:
        return NONE
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def cell(values: Sequence[float], best: str = "") -> str:
    """The mean, bold where it is the best, and the lowest and highest of the seeds where they differ."""
    if not values:
        return NONE
    middle, low, high = f"{mean(values):.3f}", f"{min(values):.2f}", f"{max(values):.2f}"
    told = f"**{middle}**" if middle == best else middle
    return told if low == high else f"{told} [{low}, {high}]"


def made_by(done: Mapping[str, Result]) -> str:
    """By which command, when and where."""
    facts = [{name: each[name] for name in ("created", "device")} | {"versions": {"torch": each["torch"]}}
             for each in done.values()]  # fmt: skip
    return made_from("studies.planted", facts)


def chosen(subjects: Sequence[Subject], seeds: Sequence[int], done: Mapping[str, Result]) -> list[str]:
    """The dev accuracy of each candidate that was tried; the chosen one is bold."""
    lines = ["| model, corpora | candidates: mean accuracy on dev texts |", "| --- | --- |"]
    for subject in subjects:
        best = choice(subject, seeds, done)
        accuracies = tried(subject, seeds, done)
        told = [f"**{name}: {right:.4f}**" if name == best else f"{name}: {right:.4f}"
                for name, right in accuracies.items()]  # fmt: skip
        if missing(subject, seeds, done):
            told.append("not finished")
        lines.append(f"| {subject.name} | {', '.join(told)} |")
    return lines


def _closed(shown: Sequence[Column], explainers: Sequence[str]) -> list[str]:
    if not shown:
        return []
    lines = ["### Where other routes are closed", "", *table("AUPRC", shown, explainers, AUPRC)]
    unfit = [name for name in explainers if not any(column.values(AUPRC, name) for column in shown)]
    if unfit and any(column.audited for column in shown):
        lines += ["", f"No model here is one for: {', '.join(f'`{name}`' for name in unfit)}."]
    return lines


def _shortcut(shown: Sequence[Column], explainers: Sequence[str]) -> list[str]:
    """How often the marker comes first, in texts whose decision hangs on it."""
    held = [column for column in shown if column.corpus == "planted:shortcut" and column.audited]
    if not held:
        return []
    used = cell(held[0].values(USED, "model"))
    head = f"How often the marker of `shortcut` comes first, in texts where the model uses it (a share of {used})."
    shares = {name: held[0].values(SHOWN, name) for name in explainers}
    rows = [f"| {name} | {cell(values)} |" for name, values in shares.items() if values]
    return [head, "", "| explainer | share |", "| --- | --- |", *rows]


def _alone(name: str, subjects: Sequence[Subject], seeds: Sequence[int], done: Mapping[str, Result]) -> list[str]:
    """One corpus: who finds the words, and whose words move the answer when they are deleted."""
    own = [subject for subject in subjects if subject.corpora == (name,)]
    shown = [column for subject in own for column in columns(subject, seeds, done)]
    if not shown:
        return []
    found, moved = (
        table(head, shown, own[0].explainers, measure) for head, measure in (("AUPRC", AUPRC), (MOVED_HEAD, MOVED))
    )
    return [f"### The corpus as it is: {title(name)}", "", *found, "", *moved]

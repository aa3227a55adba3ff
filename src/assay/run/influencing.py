"""Which training texts stand behind a decision, and which of them seem to have a wrong label."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from assay import __version__
from assay.audits.influence_checks import Lds, Removal
from assay.caching import finite
from assay.data import corpora as given
from assay.data.batches import Tokenised, tokenise
from assay.data.corpora import ours
from assay.data.examples import Corpus, Example, examples_for
from assay.errors import AssayError, unknown
from assay.explainers.choice import chosen, named
from assay.influence import METHODS, targets
from assay.influence.hybrid import Hybrid, Swapping
from assay.influence.landmarks import sentence
from assay.influence.mislabelled import SIGNALS, Signal, plain_loss, repaired, suspicion
from assay.influence.setting import Introspective, Method, Setting
from assay.influence.training_run import TrainingRun
from assay.models import store
from assay.models.network import Network
from assay.models.store import Opened
from assay.models.textmodel import predict
from assay.records import versions
from assay.run.api import check_learnt, opened_model, read
from assay.run.reporting import Answered
from assay.stories import story_of


@dataclass(frozen=True)
class Background:
    """A model with the texts that it learnt from; `training_run` is None where nobody knows how it was trained."""

    model: Opened
    corpus: Corpus
    examples: Sequence[Example]
    rows: Sequence[Tokenised]
    training_run: TrainingRun | None

    @classmethod
    def of(cls, model: Opened, corpus: Corpus) -> Background:
        """Checks that a model which was made here learnt from this corpus; of others it is taken on trust."""
        check_learnt(model, corpus)
        training_run = TrainingRun.of(model, corpus) if {"recipe", "finetuning"} & set(model.history) else None
        examples = examples_for(corpus, "train", model.classes)
        rows = (
            training_run.rows
            if training_run
            else tokenise(examples, model.tokeniser, model.tokeniser.options.longest)[0]
        )
        if not rows:
            raise AssayError(f"{corpus.name!r} has no training text that the model can read.")
        return cls(model, corpus, examples, rows, training_run)

    def setting(
        self, queries: Sequence[Tokenised], target: str = "margin", asked: Sequence[int] | None = None
    ) -> Setting:
        """The question about some texts, of their predicted classes or of those that are named."""
        classes = None if asked is None else np.asarray(asked)
        return Setting.of(self.model.network, self.rows, queries, target, classes, self.training_run)

    @cached_property
    def probabilities(self) -> Float[np.ndarray, "N C"]:
        """What the model answers for its own training texts."""
        return predict(self.model.network, self.rows)

    def test_rows(self, most: int | None = None) -> list[Tokenised]:
        """The test texts of the corpus, or the first of them."""
        examples = examples_for(self.corpus, "test", self.model.classes)[:most]
        rows, _ = tokenise(examples, self.model.tokeniser, self.model.tokeniser.options.longest)
        if not rows:
            raise AssayError("The corpus has no test text that the model can read, so nothing can be checked.")
        return rows

    def disagrees(self, place: int) -> bool:
        """Whether the model would not give a training text the label that it has."""
        return int(self.probabilities[place].argmax()) != self.rows[place].label

    def text(self, place: int) -> str:
        """The training text that a row was made of."""
        return self.examples[self.rows[place].index].text


# Do predictions about training texts come true? The model is trained again without some, and answers.


KINDS = ("removal", "lds")
CHECKED = 50  # test texts that a check asks about


def checked(
    background: Background, name: str, method: Method, kind: str, retrainings: int = 20, seed: int = 0
) -> dict[str, Any]:
    """What training again says of a method's predictions for some test texts, beside chance or simple similarity."""
    if background.training_run is None:
        raise AssayError("A check trains the model again, and how this one was trained is not known; leave it out.")
    if kind not in KINDS:
        raise unknown("check", kind, KINDS)
    if retrainings < 2:
        raise AssayError(f"A check needs at least two trainings, not {retrainings}.")
    rows = background.test_rows(CHECKED)
    if kind == "lds":
        methods = {name: method} | ({} if name == "gradient_dot" else {"gradient_dot": METHODS["gradient_dot"]})
        found = Lds((0.5,), retrainings, seed=seed)(background.setting(rows), methods)
        scores = [
            {"method": each.method, "lds": each.lds.mean, "low": each.lds.low, "high": each.lds.high}
            | {"seconds": each.seconds, "covered": each.covered}
            for each in found.scores
        ]
        whole: dict[str, Any] = finite(
            {"lds": {"methods": scores, "subsets": found.subsets, "share": 0.5, "queries": found.queries}}
        )
        return whole
    count, draws = min(20, len(background.rows) // 4), max(1, min(5, retrainings // 4))
    removal = Removal((count,), draws, seed=seed)
    made = removal(background.setting(rows[: retrainings - draws]), {name: method})
    told = [
        {"method": each.method, "count": each.count, "predicted": each.predicted.mean}
        | {"measured": each.real.mean, "low": each.real.low, "high": each.real.high}
        for each in made.removed
    ]
    told += [
        {
            "method": "chance",
            "count": count,
            "predicted": None,
            "measured": each.mean,
            "low": each.low,
            "high": each.high,
        }
        for count, each in made.chance.items()
    ]
    measured: dict[str, Any] = finite({"removal": {"rows": told, "queries": made.queries}})
    return measured


# Which training texts stand behind a decision, and which of them seem to have a wrong label.


FORMAT, FILE, PAGE = "assay-influence-1", "influence.json", "influence.html"
AUTOMATIC = "auto"
MANY = "Ask for at least one training text, and for no less than no token."
DUAL_WORK = 2e13  # multiplications that the exact dual may take; beyond, gradients are projected


@dataclass(frozen=True)
class Traced(Answered):
    """What was found among training texts; printed, it tells the finding."""

    @property
    def page(self) -> Any:
        from assay.influence import page

        return page

    def __str__(self) -> str:
        rows = [
            f"{each['score']:+10.3g}  {each['label']}  {each['text']}"
            for kind in ("supporting", "opposing", "suspects")
            for each in self.answer.get(kind, ())
        ]
        return "\n".join([f"{super().__str__()}.", *rows])


def influence(
    model: Any,
    text: str,
    corpus: Any = None,
    query: str | None = None,
    method: str | Method = AUTOMATIC,
    target: str = "margin",
    class_name: str | None = None,
    top: int = 5,
    tokens: int = 1,
    check: str | None = None,
    retrainings: int = 20,
    seed: int | None = None,
    swaps: int = 0,
) -> Traced:
    """The texts of the corpus that the model learnt from which made it decide so, and those that speak against it.

    A score is the predicted change of the target of the class, the predicted one or the one that is named, if the model
    had learnt without that text. For so many salient `tokens` of the text, the training texts and their words that made
    the model look there are found as well. A check trains the model again without some texts ("removal"), or without
    random halves ("lds"). With `swaps`, words of so many opposing training texts are put in place of the most salient
    word. Without a corpus, it is the one that the model's card names.
    """
    background = Background.of(opened := opened_model(model), learnt_corpus(opened, corpus, seed))
    answer = _of_text(background, text, query, method, target, class_name, top, tokens, swaps)
    if check is not None:
        name = str(answer["method"]["name"])
        instrument = chosen(name, METHODS, "method") if isinstance(method, str) else method
        answer["checks"] = checked(background, name, instrument, check, retrainings)
    return Traced(answer | {"command": "assay.influence(...) in Python"})


def mislabelled(
    model: Any,
    corpus: Any = None,
    method: str | Method = AUTOMATIC,
    top: int = 50,
    seed: int | None = None,
    fix: str | Path | None = None,
    way: str = "relabel",
) -> Traced:
    """The training texts whose label the model holds most against: by the plain loss, or by a method that is named.

    With `fix`, the model is trained again with the likeliest other labels for those of them whose label it would not
    give, or without these texts (the way "remove"), and stored in that folder.
    """
    background = Background.of(opened := opened_model(model), learnt_corpus(opened, corpus, seed))
    order, answer = _suspects(background, method, top)
    if fix is not None:
        answer["repair"] = _repair(background, order, Path(fix), way)
    return Traced(answer | {"command": "assay.mislabelled(...) in Python"})


def _repair(background: Background, order: Sequence[int], folder: Path, way: str) -> dict[str, Any]:
    """Trains the model again with what the most suspicious texts are blamed for mended, and stores it."""
    model = background.model
    if background.training_run is None or not isinstance(model, store.Trained):
        raise AssayError("Only a model that was made by 'assay train' can be trained again; leave --fix out.")
    if (folder / store.CARD).exists():
        raise AssayError(f"{folder} already holds a model; choose another folder for the one that is fixed.")
    chosen_rows = [index for index in order if background.disagrees(index)]
    if not chosen_rows:
        raise AssayError("The model would give each of these texts the label that it has, so nothing can be fixed.")
    test = background.test_rows()
    found = repaired(model.network, background.training_run, np.array(chosen_rows), test, way)
    made = {"way": way, "rows": len(chosen_rows), "tests": len(test)}
    accuracy = {name: list(getattr(found, name)) for name in ("before", "after", "gained")}
    assert isinstance(found.network, Network)
    history = {"corpus": model.history.get("corpus"), "repaired": made}
    store.save(replace(model, network=found.network, history=history), folder)
    whole: dict[str, Any] = finite(made | accuracy | {"folder": str(folder)})
    return whole


def learnt_corpus(model: Opened, corpus: Any = None, seed: int | None = None, **options: Any) -> Corpus:
    """The corpus that a model learnt from: the one that is given, or the one that its card names."""
    known = model.history.get("corpus")
    if corpus is None and known is None:
        raise AssayError("Where this model learnt from is not known; name the texts with --corpus.")
    if corpus is None and not ours(str(known)):
        raise AssayError(f"The model learnt from {known}, which is no name of a corpus; name the texts with --corpus.")
    asked = str(known) if corpus is None else corpus
    return given.corpus(asked, _seed(model.history) if seed is None else seed, **options)


def _seed(history: dict[str, Any]) -> int:
    """What the training of a model started from, or 0."""
    made = history.get("recipe") or history.get("finetuning") or history.get("rationalising", {}).get("base") or {}
    return int(made.get("training", {}).get("seed", 0))


def method_for(wanted: str | Method, setting: Setting) -> tuple[str, Method]:
    """The method of that name, or an object with its name.

    "auto" is the exact dual where it can be afforded, else its projection.
    """
    own: dict[str, Method] = {}
    name = wanted if isinstance(wanted, str) else ""
    if not isinstance(wanted, str):
        (name,), own = named([wanted], METHODS, "method")
    if name == AUTOMATIC:
        rows = len(setting.train) * (setting.network.classes - 1)
        work = rows**2 * setting.size
        fast = setting.network.device.type == "cuda"
        beyond = "projected(size=16384, side=384)" if fast else "projected"  # the larger, the nearer to the exact
        name = "dual" if work <= DUAL_WORK * (100 if fast else 1) else beyond
    method = chosen(name, METHODS | own, "method")
    if (reason := method.unfit(setting)) is not None:
        raise AssayError(f"The method {name!r} cannot serve here: {reason}.")
    return name, method


def _of_text(
    background: Background,
    text: str,
    query: str | None,
    method: str | Method,
    target: str,
    class_name: str | None,
    top: int,
    tokens: int,
    swaps: int,
) -> dict[str, Any]:
    """The training texts that a decision leans on and those that speak against it, as plain numbers."""
    if top < 1 or min(tokens, swaps) < 0:
        raise AssayError(MANY)
    model, row = background.model, read(background.model, text, query)
    if class_name is not None and class_name not in model.classes:
        raise unknown("class", class_name, model.classes)
    setting = background.setting([row], target, None if class_name is None else [model.classes.index(class_name)])
    if class_name is None and target == "loss":
        setting = background.setting([row], target, [int(_answer(setting).argmax())])
    started = time.monotonic()
    name, instrument = method_for(method, setting)
    found = instrument(setting)
    probabilities = _answer(setting)
    supports = found.scores[0] * (1 if target == "loss" else -1)  # what is lost without the text
    order = np.argsort(-supports, kind="stable").tolist()
    best, worst = order[:top], order[::-1][:top]
    answer = {
        "kind": "text",
        "text": text,
        "query": query,
        "words": [text[start:end] for start, end in row.spans.tolist()],
        "classes": list(model.classes),
        "predicted": model.classes[int(probabilities.argmax())],
        "asked": model.classes[int(setting.classes[0])],
        "probabilities": dict(zip(model.classes, probabilities.tolist(), strict=True)),
        "target": target,
        "value": _value(setting),
        "supporting": [_trained(background, place, found, 0) for place in best if supports[place] > 0],
        "opposing": [_trained(background, place, found, 0) for place in worst if supports[place] < 0],
        "totals": [float(supports[supports > 0].sum()), float(supports[supports < 0].sum())],
        "seconds": round(time.monotonic() - started, 2),
        "method": _about_method(name, instrument, found),
    }
    if tokens:
        looked = Hybrid().explain(setting, 0, top=top, most=tokens)
        answer["tokens"] = looked.json(background.text, text, model.classes)
    if swaps:
        answer["swap"] = _swap(background, setting, text, swaps)
    if found.facts and (reasons := found.facts[0].get("landmarks")):
        answer["sentence"] = _sentence(background, reasons)
    whole: dict[str, Any] = finite(_about(background) | answer)
    return whole


def _sentence(background: Background, reasons: Mapping[str, Any]) -> str:
    """What a text reminds a landmark classifier of."""
    names = background.model.classes

    def named(places: Sequence[int]) -> list[tuple[str, str]]:
        return [(background.text(place), str(names[background.rows[place].label])) for place in places[:1]]

    alike = [text for text, _ in named(reasons["alike"])]
    return sentence(names[reasons["answer"]], alike, named(reasons["unlike"]), named(reasons["against"]))


def _swap(background: Background, setting: Setting, text: str, tries: int) -> dict[str, Any]:
    """What the model answers with a word of an opposing training text in place of the most salient one."""
    (found,) = Swapping(tries=tries)(setting)
    row, names = background.rows[found.example], background.model.classes
    start, end = setting.queries[0].spans[found.position].tolist()
    first, last = row.spans[found.token].tolist()
    word = background.text(found.example)[first:last]
    return {
        "word": text[start:end],
        "by": word,
        "text": f"{text[:start]}{word}{text[end:]}",
        "source": _described(background, found.example),
        "before": found.before,
        "after": found.after,
        "predicted": str(names[found.predicted]),
        "flipped": found.flipped,
    }


def _suspects(background: Background, method: str | Method, top: int) -> tuple[list[int], dict[str, Any]]:
    """The training texts whose label the model holds most against, as rows and as words and numbers.

    They are ranked by the plain loss, or by a method that is named.

    No method found flipped labels clearly better than the loss does (studies/influence), so "auto" is the loss.
    """
    if top < 1:
        raise AssayError(MANY)
    setting = background.setting(background.rows[:1], "loss")
    started = time.monotonic()
    losses = plain_loss(setting)
    name, signal = _signal("loss" if method == AUTOMATIC else method, setting)
    scores = suspicion(setting, name, signal)
    order = np.argsort(-scores, kind="stable")[:top].tolist()
    rows = [
        _described(background, place) | {"score": float(scores[place]), "loss": float(losses[place])} for place in order
    ]
    whole: dict[str, Any] = finite(
        _about(background)
        | {
            "kind": "mislabelled",
            "classes": list(background.model.classes),
            "suspects": rows,
            "seconds": round(time.monotonic() - started, 2),
            "method": {"name": name},
        }
    )
    return order, whole


def _signal(method: str | Method, setting: Setting) -> tuple[str, Signal]:
    """What ranks training texts by suspicion: a signal without gradients, or what a method says of each text itself."""
    if isinstance(method, str) and method in SIGNALS:
        return method, SIGNALS[method]
    name, instrument = method_for(method, setting)
    if not isinstance(instrument, Introspective):
        raise AssayError(f"The method {name!r} cannot say how a text bears on itself; try dual, or loss.")
    return name, instrument.own


def _answer(setting: Setting) -> Float[np.ndarray, " C"]:
    found: np.ndarray = predict(setting.network, setting.queries)[0]
    return found


@torch.no_grad()
def _value(setting: Setting) -> float:
    ((_, batch),) = setting.batches(setting.queries)
    logits = setting.network(setting.network.embed(batch), batch).logits
    return float(targets.target(setting.target)(logits.float(), torch.from_numpy(setting.classes).to(logits.device)))


def _described(background: Background, place: int) -> dict[str, Any]:
    """One training text, its label, and what the model says of it."""
    row, probabilities = background.rows[place], background.probabilities[place]
    names = background.model.classes
    example = background.examples[row.index]
    return {
        "place": row.index,
        "text": example.text,
        "query": example.query,
        "label": names[row.label],
        "predicted": names[int(probabilities.argmax())],
        "probability": float(probabilities[row.label]),
    }


def _trained(background: Background, place: int, found: Any, query: int) -> dict[str, Any]:
    error = None if found.errors is None else float(found.errors[query, place])
    return _described(background, place) | {"score": float(found.scores[query, place]), "error": error}


def _about_method(name: str, method: Method, found: Any) -> dict[str, Any]:
    meaning = " ".join((method.__doc__ or "").strip().partition("\n\n")[0].split())
    said = dict(found.notes) | (dict(found.facts[0]) if found.facts else {})
    notes = {key: value for key, value in said.items() if isinstance(value, str | int | float | bool)}
    told = {"name": name, "meaning": meaning, "story": story_of(method).json()}
    return told | {"covered": found.covered, "notes": notes}


def _about(background: Background) -> dict[str, Any]:
    model, corpus = background.model, background.corpus
    return {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"assay": __version__} | versions(),
        "model": {
            **model.network.facts,
            "parameters": model.network.parameter_count,
            "sha256": store.fingerprint(model.network),
        },
        "corpus": {"name": corpus.name, "train": len(background.rows), "course": background.training_run is not None},
    }

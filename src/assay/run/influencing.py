"""Which training texts stand behind a decision, and which of them seem to have a wrong label."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from assay import __version__
from assay.errors import AssayError, unknown
from assay.explainers.choice import chosen
from assay.influence import METHODS, targets
from assay.influence.hybrid import Hybrid
from assay.influence.mislabelled import SIGNALS, Signal, plain_loss
from assay.influence.setting import Introspective, Method, Setting
from assay.models import store
from assay.models.predictions import predict
from assay.run.background import Background
from assay.run.kept import finite
from assay.run.texts import read
from assay.run.versions import versions
from assay.stories import story_of

FORMAT, FILE, PAGE = "assay-influence-1", "influence.json", "influence.html"
AUTOMATIC = "auto"
MANY = "Ask for at least one training text, and for no less than no token."
DUAL_WORK = 2e13  # multiplications that the exact dual may take; beyond, gradients are projected


def method_for(name: str, setting: Setting) -> tuple[str, Method]:
    """The method of that name; "auto" is the exact dual where it can be afforded, else its projection."""
    if name == AUTOMATIC:
        rows = len(setting.train) * (setting.network.classes - 1)
        work = rows**2 * sum(each.numel() for each in setting.parameters.values())
        fast = setting.network.device.type == "cuda"
        beyond = "projected(size=16384, side=384)" if fast else "projected"  # the larger, the nearer to the exact
        name = "dual" if work <= DUAL_WORK * (100 if fast else 1) else beyond
    method = chosen(name, METHODS, "method")
    if (reason := method.unfit(setting)) is not None:
        raise AssayError(f"The method {name!r} cannot serve here: {reason}.")
    return name, method


def influential(
    background: Background,
    text: str,
    query: str | None = None,
    method: str = AUTOMATIC,
    target: str = "margin",
    asked: str | None = None,
    top: int = 5,
    tokens: int = 1,
) -> dict[str, Any]:
    """The training texts that a decision leans on and those that speak against it, as plain numbers.

    `asked` is the class in question, else the predicted one. For so many salient `tokens` of the text, the training
    texts and their words that made the model look there are found as well.
    """
    if top < 1 or tokens < 0:
        raise AssayError(MANY)
    model, row = background.model, read(background.model, text, query)
    if asked is not None and asked not in model.classes:
        raise unknown("class", asked, model.classes)
    setting = background.setting([row], target, None if asked is None else [model.classes.index(asked)])
    if asked is None and target == "loss":
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
    whole: dict[str, Any] = finite(_about(background) | answer)
    return whole


def suspects(background: Background, method: str = AUTOMATIC, top: int = 50) -> dict[str, Any]:
    """The training texts whose label the model holds most against: by the plain loss, or by a method that is named.

    No method found flipped labels clearly better than the loss does (studies/influence), so "auto" is the loss.
    """
    if top < 1:
        raise AssayError(MANY)
    setting = background.setting(background.rows[:1], "loss")
    started = time.monotonic()
    name = "loss" if method == AUTOMATIC else method
    losses = plain_loss(setting)
    scores = losses if name == "loss" else _signal(name, setting)(setting)
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
    return whole


def _signal(name: str, setting: Setting) -> Signal:
    """What ranks training texts by suspicion: a signal without gradients, or what a method says of each text itself."""
    if name in SIGNALS:
        return SIGNALS[name]
    _, instrument = method_for(name, setting)
    if not isinstance(instrument, Introspective):
        raise AssayError(f"The method {name!r} cannot say how a text bears on itself; try dual, or loss.")
    return instrument.own


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
    notes = {key: value for key, value in found.notes.items() if isinstance(value, str | int | float | bool)}
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

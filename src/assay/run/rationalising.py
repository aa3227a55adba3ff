"""From a corpus to a model that selects what it reads, and to what that selection is worth."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from assay import __version__
from assay.caching import finite
from assay.data.annotated import ExplainedCorpus
from assay.data.batches import tokenise
from assay.data.examples import Corpus, Example, Span
from assay.errors import AssayError, unknown
from assay.files import write_text
from assay.models import store
from assay.models.config import Architecture, Training
from assay.models.hf_finetuning import FineTuning
from assay.models.recipes import Recipe
from assay.models.store import Opened
from assay.plugins import member
from assay.rationales.measuring import Selected, collapse, measured, pooled, selected
from assay.rationales.rationaliser import Selecting
from assay.rationales.recipes import RECIPES
from assay.rationales.selection_stories import SENTENCES
from assay.rationales.text_explanations import TextExplainer
from assay.rationales.trainers import (
    BASE,
    OURS,
    PRETRAINED,
    UNPLAYED,
    Rationalising,
    SelfExplanation,
    TrainingPlan,
    TransportRecipe,
    pretrained,
    train_model,
)
from assay.rationales.units import Units
from assay.records import versions
from assay.run import sentences
from assay.run.auditing import device_of
from assay.run.reporting import Answered
from assay.stories import story_of

GAME = ("rate", "units", "width", "reading", "size", "continuity", "concepts")
FITTING = {"transport": ("pairs", "price"), "selfexplain": ("rate", "width", "concepts")}
"""What can be asked of a selection: in a game, and in recipes without one."""

SELECTING = {name for names in (GAME, *FITTING.values()) for name in names}
WORD_BY_WORD = ("encoder", "embedding", "hidden", "alignment_size", "vectors", "frozen")
"""What can be asked of a network that aligns words."""


def chosen(
    recipe: str,
    model: str | None = None,
    rate: float | None = None,
    units: str = "token",
    seed: int = 0,
    device: str = "cpu",
    **options: Any,
) -> TrainingPlan:
    """What is to be trained; options that are None are as usual."""
    member(recipe, {**RECIPES, **UNPLAYED}, "recipe")
    asked = {"rate": rate, "units": None if units == "token" else units} | options
    given = {name: value for name, value in asked.items() if value is not None}
    steps, parts = ({each.name for each in fields(kind)} for kind in (Training, Architecture))
    for name in given:
        if name not in steps | parts | SELECTING:
            raise unknown("option", name, steps | parts | SELECTING)
    selecting, own, trained = (
        {name: given[name] for name in given if name in names} for names in (SELECTING, parts, steps)
    )
    _check_fitting(recipe, selecting, FITTING.get(recipe, GAME))
    if recipe == "transport":
        _check_fitting(recipe, own, WORD_BY_WORD)
        if model is not None:
            raise AssayError("The recipe 'transport' aligns words that a network of ours encodes; leave --model out.")
    usual = BASE if recipe == "transport" else OURS
    training = _training(usual.training if model is None else PRETRAINED, seed, trained)
    if model is None:
        return _wanted(recipe, _ours(usual, own, training), selecting)
    return _wanted(recipe, _encoder(model, own, training, device), selecting)


def _wanted(recipe: str, base: Recipe | FineTuning, asked: dict[str, Any]) -> TrainingPlan:
    """The recipe with what was asked of the selection, where that is not as usual."""
    if recipe == "transport":
        assert isinstance(base, Recipe)
        named = {"most": asked.get("pairs"), "price": asked.get("price")}
        changes = {name: value for name, value in named.items() if value is not None}
        return TransportRecipe(replace(TransportRecipe().transport, **changes), base)
    if recipe == "selfexplain":
        named = {"width": asked.get("width"), "stored": asked.get("concepts"), "rate": asked.get("rate")}
        return SelfExplanation(base=base, **{name: value for name, value in named.items() if value is not None})
    stretch = {name: asked.pop(word) for name, word in (("kind", "units"), ("width", "width")) if word in asked}
    return Rationalising(recipe, base, units=Units(**stretch), **asked)


def _check_fitting(recipe: str, asked: Collection[str], fitting: Collection[str]) -> None:
    lost = next((name for name in asked if name not in fitting), None)
    if lost is not None:
        takes = " and ".join(f"--{name}" for name in fitting if name in SELECTING)
        takes = f"which takes {takes.replace(' and ', ', ', takes.count(' and ') - 1)}; " if takes else ""
        raise AssayError(f"--{lost.replace('_', '-')} does not fit the recipe {recipe!r}, {takes}leave it out.")


def _training(usual: Training, seed: int, asked: dict[str, Any]) -> Training:
    changes: dict[str, Any] = {"seed": seed} | asked
    if "epochs" in changes:
        changes.setdefault("patience", changes["epochs"])
    return replace(usual, **changes)


def _ours(usual: Recipe, parts: dict[str, Any], training: Training) -> Recipe:
    if parts.get("vectors") == "glove":
        parts.setdefault("embedding", 50)
    return replace(usual, architecture=replace(usual.architecture, **parts), training=training)


def _encoder(name: str, parts: dict[str, Any], training: Training, device: str) -> FineTuning:
    frozen = bool(parts.pop("frozen", False))
    if parts:
        lost = next(iter(parts)).replace("_", "-")
        raise AssayError(f"--{lost} is for networks that are trained from scratch; leave it out with {name}.")
    return pretrained(name.removeprefix("hf:"), training, device, frozen)


# What the selections of a model are worth on the test texts of a corpus, as plain numbers with texts to look at.


FORMAT = "assay-rationales-1"
SHOWN = 8  # texts of either kind, decided right and decided wrong, on the page


def examined(model: Opened, corpus: Corpus, seed: int = 0, limit: int | None = None) -> dict[str, Any]:
    """What the selections of a model on the test texts are worth, as plain numbers, with some of them to look at."""
    network = model.network
    assert isinstance(network, Selecting)
    texts = _sample(corpus.test, limit, seed)
    rows, skipped = tokenise([example for _, example in texts], model.tokeniser, model.tokeniser.options.longest)
    if not rows:
        raise AssayError(f"No test text of {corpus.name!r} can be measured: they are empty or too long for this model.")
    found = selected(network, rows)
    trained, shares = model.history["rationalising"], model.history.get("shares", [])
    readable = Texts(model, texts)
    story = story_of(member(trained["recipe"], RECIPES | UNPLAYED, "recipe"))
    whole: dict[str, Any] = finite(
        {
            "format": FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {"assay": __version__} | versions(),
            "device": device_of(model),
            "command": "assay.rationalise(...) in Python",
            "recipe": {"name": trained["recipe"], "meaning": story.question, "story": story.json()},
            "selecting": network.selecting,
            "reads": network.reads,
            "critic": network.critic,
            "model": {
                **network.facts,
                "parameters": network.parameter_count,
                "sha256": store.fingerprint(network),
                **{name: model.history[name] for name in ("epochs", "best_epoch", "best_dev")},
                "shares": shares,
            },
            "corpus": {
                "name": corpus.name,
                "train": len(corpus.train),
                "test": len(corpus.test),
                "measured": len(rows),
                "skipped": skipped,
                "marked": sum(each.row.truth is not None and bool(each.row.truth.any()) for each in found),
                "planted": any(example.planted for _, example in texts),
                "majority": _majority(corpus),
            },
            "classes": list(model.classes),
            "measures": measured(found),
            "collapse": collapse(found, shares, _majority(corpus)),
            "pooled": pooled(found, len(model.classes)),
            **_parts(found),
            "texts": [readable.text(each) for each in found],
            "examples": [readable.example(each) for each in _some(found, seed)],
        }
    )
    return whole


def _sample(examples: Sequence[Example], limit: int | None, seed: int) -> list[tuple[int, Example]]:
    """Some of the texts with their numbers, in their order."""
    if limit is not None and limit < 1:
        raise AssayError(f"At least one text must be measured, not {limit}.")
    if limit is None or limit >= len(examples):
        return list(enumerate(examples))
    places = np.random.default_rng(seed).choice(len(examples), limit, replace=False)
    return [(int(place), examples[place]) for place in np.sort(places)]


def _majority(corpus: Corpus) -> float:
    """How often the class that is most frequent in training is right."""
    counts = np.bincount([example.label for example in corpus.train])
    return (
        float(np.mean([example.label == counts.argmax() for example in corpus.test])) if corpus.test else float("nan")
    )


def _parts(found: Sequence[Selected]) -> dict[str, Any]:
    """Of models whose answer is a sum of parts, how much of it each part is, on average over texts."""
    parts = [each.account["parts"] for each in found if "parts" in each.account]
    if not parts:
        return {}
    sizes = np.abs([list(each.values()) for each in parts])
    shares = (sizes / np.maximum(sizes.sum(-1, keepdims=True), 1e-12)).mean(0)
    return {"parts": dict(zip(parts[0], shares.tolist(), strict=True))}


def _some(found: Sequence[Selected], seed: int) -> list[Selected]:
    """Texts to look at, drawn by the seed: right decisions and wrong ones, those with marks first."""
    order = np.random.default_rng(seed).permutation(len(found)).tolist()
    shuffled = [found[place] for place in order]
    shuffled.sort(key=lambda each: each.row.truth is None or not bool(each.row.truth.any()))
    right = [each for each in shuffled if each.predicted == each.row.label]
    wrong = [each for each in shuffled if each.predicted != each.row.label]
    return right[:SHOWN] + wrong[:SHOWN]


@dataclass(frozen=True)
class Texts:
    """The texts that rows were made of, each with its number in the corpus, and the model that read them."""

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


MODEL = "model"
FILES = {FORMAT: "rationales", sentences.FORMAT: "sentences"}
"""The names of the page and of the numbers, without their endings."""


@dataclass(frozen=True)
class Rationalised(Answered):
    """A model that explains itself, and what was measured of it as plain numbers."""

    model: Opened | TextExplainer

    @property
    def page(self) -> ModuleType:
        return page_of(self.answer)

    @property
    def measures(self) -> dict[str, float]:
        """The mean of each measure over the test texts."""
        return {name: each["mean"] for name, each in self.answer["measures"].items()}


def page_of(answer: dict[str, Any]) -> ModuleType:
    """The module that writes the page of an answer."""
    from assay.rationales import selection_page, sentence_page

    return sentence_page if answer["format"] == sentences.FORMAT else selection_page


def rationalise(
    corpus: Corpus | ExplainedCorpus,
    recipe: str = "mcd",
    model: str | None = None,
    rate: float | None = None,
    units: str = "token",
    seed: int = 0,
    out: str | Path | None = None,
    device: str = "cpu",
    limit: int | None = None,
    **options: Any,
) -> Rationalised:
    """A model that decides by the words that it selects, trained on the corpus, and what its selections are worth.

    `recipe` is a name of assay.rationales.recipes.RECIPES, or of UNPLAYED beside it. Players are networks of ours, or
    where a `model` is named ("minilm", a folder, or a name on the hub) pretrained encoders. Without a `rate` the share
    of words is the one that people marked. Of the test texts `limit` are measured, drawn by the seed. Other options are
    those of Architecture and Training, and `width`, `reading`, `size`, `continuity`, `concepts`, `pairs` and `price` of
    the selection. With a folder `out`, model and results are stored there, and an interrupted training goes on.

    With a recipe of SENTENCES and a corpus with explanations (assay.data.annotated.explained), the model writes a
    sentence for each answer instead.
    """
    place = None if out is None else Path(out)
    folder = None if place is None else place / MODEL
    if recipe in SENTENCES:
        if not isinstance(corpus, ExplainedCorpus):
            raise AssayError(f"The recipe {recipe!r} learns from sentences that explain; {sentences.CORPORA}.")
        asked = {"model": model, "rate": rate, "units": units} | options
        how = sentences.recipe_of(recipe, seed, asked)
        made: Opened | TextExplainer
        made, answer = sentences.explained_in_sentences(corpus, recipe, how, limit, folder, device)
    else:
        wanted = chosen(recipe, model, rate, units, seed, device, **options)
        if isinstance(corpus, ExplainedCorpus):
            raise AssayError(f"The recipe {recipe!r} selects words; give it a corpus of texts with labels.")
        corpus = wanted.checked(corpus)
        started = time.monotonic()
        made = train_model(corpus, wanted, folder, device)
        answer = examined(made, corpus, seed, limit) | {"seconds": round(time.monotonic() - started, 1)}
    if place is not None:
        write(answer, place)
    return Rationalised(answer, made)


def write(answer: dict[str, Any], folder: Path) -> Path:
    """Writes the numbers and the page; returns where the page is."""
    from assay.report.save import save

    name, page = FILES[answer["format"]], page_of(answer)
    write_text(folder / f"{name}.json", json.dumps(answer, ensure_ascii=False, allow_nan=False) + "\n")
    save(page.document(answer), folder / f"{name}.html")
    return folder / f"{name}.html"

"""Writes a part of docs/performance.md: how time grows with words, texts and the corpus, and what has to be read.

    python -m benchmarks.scaling                               # the part on growth, of a BiLSTM, and its figure
    python -m benchmarks.scaling --device cuda --models minilm # the part on a GPU

The growth is the slope of log time in log size over the sizes measured: 1 is linear, 2 is quadratic.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from assay import costs, progress
from assay.audits import CHEAP, COSTLY
from assay.audits.cases import Audit, Case
from assay.audits.sanity import Sanity
from assay.audits.stability import Stability
from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.explainers.needs import unfit
from assay.intervene.perturbation import cascade, nudges
from assay.models.config import Architecture
from assay.models.network import Classifier
from assay.models.textmodel import TextModel
from assay.types import Batch, Explainer, Model
from benchmarks import sizes
from benchmarks.__main__ import PAGE, WORDS, machine
from benchmarks.growth import LONGEST, Series, measured
from studies.pages import put

LONGEST_GPU = 0.4  # seconds, as those of the growth
LENGTHS, TEXTS = (16, 32, 64, 128), (4, 8, 16, 32)
FIXED_TEXTS, FIXED_LENGTH = 8, 32
EVERY = 5  # each fifth word counts as the reason
PLANTED = ("truth", "shortcut")  # audits that go by what decides for certain
FEW = ("attention", "gradient", "leave_one_out", "random")
SHOWN = ("attention", "gradient", "integrated_gradients", "leave_one_out", "lime", "owen", "hedge")
FIGURE = Path("docs/figures/growth.svg")
Run = Callable[[], object]
Asked = Callable[[Batch], Run]  # what does not count is done before the run


@dataclass(frozen=True)
class Row:
    """What one explainer or audit takes: passes over a text, time over words and texts, and words read over words."""

    forward: float
    backward: float
    words: Series
    texts: Series
    read: Series

    def line(self, name: str) -> str:
        passes = " | ".join(f"{count:,.0f}" for count in (self.forward, self.backward))
        together = min(FIXED_TEXTS, self.texts.sizes[-1])
        taken = self.texts.at(together) / together
        each = f"{taken:,.0f}" if taken >= 100 else f"{taken:.3g}"
        each += f", {together} at a time" if together < FIXED_TEXTS else ""
        cut = "" if len(self.words.sizes) == len(LENGTHS) else f", to {self.words.sizes[-1]} words"
        growths = (_told(self.read.growth), _told(self.words.growth) + cut, _told(self.texts.growth))
        return f"| {name} | {passes} | {each} | {' | '.join(growths)} |"


def _told(growth: float) -> str:
    return "–" if math.isnan(growth) else f"{growth:.2f}"


def sentences(texts: int, words: int, device: str) -> Batch:
    """Random sentences, all of one length; some of their words count as the reason."""
    ids = torch.from_numpy(np.random.default_rng(texts * words).integers(4, WORDS, (texts, words)))
    truth = (torch.arange(words) % EVERY == 0).expand(texts, words)
    return Batch(ids, torch.ones_like(truth), torch.zeros(texts, dtype=torch.long), truth=truth).to(device)


def bilstm(device: str) -> Model:
    torch.manual_seed(0)
    return Classifier(Architecture(), WORDS, 2).eval().to(device)


def minilm(device: str) -> Model:
    from assay.models.hf_finetuning import FineTuning, begun
    from assay.models.hf_loading import Opening

    return begun(FineTuning("minilm"), ("no", "yes"), Opening(device=device))[0].eval()


TITLES = {"bilstm": "A BiLSTM of the paper's size", "minilm": "MiniLM"}
MODELS: dict[str, Callable[[str], Model]] = {"bilstm": bilstm, "minilm": minilm}


def row(asked: Asked, device: str) -> Row | None:
    """What it takes, or None where the model cannot serve."""
    try:
        run = asked(sentences(FIXED_TEXTS, FIXED_LENGTH, device))
        with costs.measured() as cost:
            run()
    except AssayError:
        return None
    read: dict[int, float] = {}

    def counted(size: int, run: Run) -> None:
        with costs.measured() as taken:
            run()
        read[size] = taken.forward + taken.backward

    def grown(shapes: Mapping[int, tuple[int, int]]) -> Series:
        runs = {size: partial(counted, size, asked(sentences(*shape, device))) for size, shape in shapes.items()}
        return measured(runs, gpu, LONGEST_GPU if gpu else LONGEST)

    gpu = device == "cuda"
    words = grown({length: (FIXED_TEXTS, length) for length in LENGTHS})
    over = Series(words.sizes, [size * read[size] for size in words.sizes])
    texts = grown({count: (count, FIXED_LENGTH) for count in TEXTS})
    return Row(cost.forward / FIXED_TEXTS, cost.backward / FIXED_TEXTS, words, texts, over)


def questions(model: Model, device: str) -> dict[str, Asked]:
    """Every explainer, and every audit that trains no model, which the model can serve."""
    fit = {name: each for name, each in EXPLAINERS.items() if unfit(each, model) is None}
    scorers = {name: EXPLAINERS[name] for name in FEW if name in fit}
    known: dict[torch.Size, dict[str, Tensor]] = {}  # audits judge scores that are there

    def case(batch: Batch, planted: bool) -> Case:
        if batch.ids.shape not in known:
            known[batch.ids.shape] = {name: each(model, batch, batch.labels) for name, each in scorers.items()}
        return Case(model, batch, known[batch.ids.shape], explainers=scorers, planted=planted)

    def explained(explainer: Explainer) -> Asked:
        return lambda batch: lambda: explainer(model, batch, batch.labels)

    def judged(audit: Audit, planted: bool) -> Asked:
        def asked(batch: Batch) -> Run:
            case(batch, planted)
            return lambda: audit(case(batch, planted))

        return asked

    small, ready = sentences(2, 8, device), audits(model)
    served = {name: each for name, each in ready.items() if each.unfit(case(small, name in PLANTED)) is None}
    found = {name: explained(each) for name, each in fit.items()}
    return found | {f"audit {name}": judged(each, name in PLANTED) for name, each in served.items()}


def audits(model: Model) -> dict[str, Audit]:
    """Those that train no model; the other models that two of them need are made once."""
    assert isinstance(model, TextModel)
    made: dict[str, Audit] = {
        "sanity": Sanity(networks=cascade(model, 0)),
        "stability": Stability(moved=nudges(model, Stability.share, range(Stability.draws))),
        "searched": COSTLY["searched"],
        "dispersion": COSTLY["dispersion"],
    }
    return CHEAP | made


def rows(model: Model, device: str) -> dict[str, Row]:
    found = {}
    questioned = questions(model, device)
    with progress.bar() as shown:
        task = shown.add_task("measuring", total=len(questioned))
        for name, asked in questioned.items():
            found[name] = row(asked, device)
            shown.advance(task)
    return {name: each for name, each in found.items() if each is not None}


def table(found: Mapping[str, Row]) -> list[str]:
    head = "| | forward | backward | ms a text | words read, with words | time, with words | time, with texts |"
    return [head, "|---|---|---|---|---|---|---|", *(each.line(name) for name, each in found.items())]


def corpora(found: Mapping[str, tuple[Series, str]]) -> list[str]:
    """The table of corpus sizes."""
    lines = ["| | floor | sizes N | ms | growth |", "|---|---|---|---|---|"]
    for name, (series, floor) in found.items():
        times, counts = (" · ".join(f"{value:,.0f}" for value in part) for part in (series.times, series.sizes))
        lines.append(f"| {name} | {floor} | {counts} | {times} | {series.growth:.2f} |")
    return lines


ABOUT = f"""Random sentences. *Forward* and *backward* are the passes over one text of {FIXED_LENGTH} words that were
taken, parts of a text counted as parts. *ms a text*: of {FIXED_LENGTH} words, {FIXED_TEXTS} at a time. The last three
columns are slopes in logarithms, from {LENGTHS[0]} to {LENGTHS[-1]} words or {TEXTS[0]} to {TEXTS[-1]} texts: 1 is
linear, 2 quadratic, below 1 the larger batch is used better. *Words read* are those of all versions, forward and
back. Audits judge scores that are there, of attention, gradients, leave-one-out and chance. A series ends when one
run takes more than {{longest:g}} s."""
FIGURES = f"![Time over size on logarithmic axes](figures/{FIGURE.name})\n\n*Dashed: linear growth.*\n"


def said(gpu: bool, models: Iterable[str]) -> list[str]:
    """What was run where, and what the columns mean."""
    where = f"{torch.cuda.get_device_name()}; torch {torch.__version__}" if gpu else machine()
    command = "python -m benchmarks.scaling" + (f" --device cuda --models {','.join(models)}" if gpu else "")
    about = ABOUT.format(longest=LONGEST_GPU if gpu else LONGEST)
    return [f"Made by `{command}` on {time.strftime('%Y-%m-%d')}: {where}.", "", about, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--models", default=",".join(MODELS), help="those to measure on a GPU")
    options = parser.parse_args()
    torch.set_num_threads(1)
    gpu = options.device == "cuda"
    found: dict[str, dict[str, Row]] = {}
    parts: list[str] = []
    for name in options.models.split(",") if gpu else ("bilstm",):
        found[name] = rows(MODELS[name](options.device), options.device)
        parts += [f"### {TITLES[name]}", "", *table(found[name]), ""]
        if gpu:
            put(PAGE, "\n".join([*said(gpu, found), *parts]), "a GPU")
    if gpu:
        return
    from benchmarks.curves import drawn

    grown = sizes.series()
    parts += ["### Corpus size", "", f"N texts, Q = {sizes.QUERIES} queries, a small BiLSTM.", "", *corpora(grown), ""]
    named = {name: found["bilstm"][name] for name in SHOWN}
    words, texts = ({name: getattr(each, side) for name, each in named.items()} for side in ("words", "texts"))
    whole = {name: series for name, (series, _) in grown.items()}
    drawn({"words in a text": words, "texts": texts, "texts in the corpus": whole}, FIGURE)
    put(PAGE, "\n".join([*said(gpu, found), *parts, FIGURES]), "growth")


if __name__ == "__main__":
    main()

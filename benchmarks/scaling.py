"""Writes a part of docs/performance.md: how time grows with words, texts and the corpus, and what has to be read.

    python -m benchmarks.scaling                                      # the part on growth, and its figure
    python -m benchmarks.scaling --device cuda --models bilstm,minilm # the part on a GPU

The growth is the slope of log time in log size over the sizes measured: 1 is linear, 2 is quadratic.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from assay import costs, progress
from assay.audits import CHEAP
from assay.audits.cases import Case
from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.explainers.needs import unfit
from assay.models.architecture import Architecture
from assay.models.classifier import Classifier
from assay.types import Batch, Model
from benchmarks import sizes
from benchmarks.__main__ import PAGE, WORDS, machine
from benchmarks.growth import LONGEST, Series, drawn, measured
from studies.pages import put

LENGTHS, TEXTS = (16, 32, 64, 128), (4, 8, 16, 32)
FIXED_TEXTS, FIXED_LENGTH = 8, 32
FEW = ("attention", "gradient", "leave_one_out", "random")
SHOWN = ("attention", "gradient", "integrated_gradients", "leave_one_out", "lime", "owen", "hedge")
FIGURE = Path("docs/figures/growth.svg")
Run = Callable[[Batch], object]


@dataclass(frozen=True)
class Row:
    """What one explainer or audit takes: passes over a text, and its time over words and over texts."""

    forward: float
    backward: float
    words: Series
    texts: Series

    def line(self, name: str) -> str:
        passes = " | ".join(f"{count:,.0f}" for count in (self.forward, self.backward))
        each = self.words.at(FIXED_LENGTH) / FIXED_TEXTS
        cut = "" if len(self.words.sizes) == len(LENGTHS) else f", to {self.words.sizes[-1]} words"
        return f"| {name} | {passes} | {each:.3g} | {self.words.growth:.2f}{cut} | {self.texts.growth:.2f} |"


def sentences(texts: int, words: int, device: str) -> Batch:
    """Random sentences, all of one length."""
    ids = torch.from_numpy(np.random.default_rng(texts * words).integers(4, WORDS, (texts, words)))
    return Batch(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros(texts, dtype=torch.long)).to(device)


def bilstm(device: str) -> Model:
    torch.manual_seed(0)
    return Classifier(Architecture(), WORDS, 2).eval().to(device)


def minilm(device: str) -> Model:
    from assay.models.huggingface.finetuning import FineTuning, begun
    from assay.models.huggingface.opening import Opening

    return begun(FineTuning("minilm"), ("no", "yes"), Opening(device=device))[0].eval()


MODELS: dict[str, Callable[[str], Model]] = {"bilstm": bilstm, "minilm": minilm}


def row(run: Run, device: str) -> Row | None:
    """What it takes, or None where the model cannot serve."""
    try:
        with costs.measured() as cost:
            run(sentences(FIXED_TEXTS, FIXED_LENGTH, device))
    except AssayError:
        return None

    def grown(shapes: Mapping[int, tuple[int, int]]) -> Series:
        given = {size: sentences(*shape, device) for size, shape in shapes.items()}
        return measured({size: lambda batch=batch: run(batch) for size, batch in given.items()}, device == "cuda")

    words = grown({length: (FIXED_TEXTS, length) for length in LENGTHS})
    texts = grown({count: (count, FIXED_LENGTH) for count in TEXTS})
    return Row(cost.forward / FIXED_TEXTS, cost.backward / FIXED_TEXTS, words, texts)


def asked(model: Model, device: str) -> dict[str, Run]:
    """Every explainer and cheap audit that the model can serve."""
    fit = {name: each for name, each in EXPLAINERS.items() if unfit(each, model) is None}
    scorers = {name: EXPLAINERS[name] for name in FEW if name in fit}

    def audited(audit: Callable[[Case], object]) -> Run:
        def run(batch: Batch) -> object:
            scores = {name: each(model, batch, batch.labels) for name, each in scorers.items()}
            return audit(Case(model, batch, scores, explainers=scorers))

        return run

    case = Case(model, sentences(2, 8, device), {}, explainers=scorers)
    audits = {name: each for name, each in CHEAP.items() if each.unfit(case) is None}
    explained: dict[str, Run] = {
        name: lambda batch, each=each: each(model, batch, batch.labels) for name, each in fit.items()
    }
    return explained | {f"audit {name}, with {len(scorers)} explainers": audited(each) for name, each in audits.items()}


def rows(model: Model, device: str) -> dict[str, Row]:
    found = {}
    questions = asked(model, device)
    with progress.bar() as shown:
        task = shown.add_task("measuring", total=len(questions))
        for name, run in questions.items():
            found[name] = row(run, device)
            shown.advance(task)
    return {name: each for name, each in found.items() if each is not None}


def table(found: Mapping[str, Row]) -> list[str]:
    head = "| | forward | backward | ms a text | growth with words | growth with texts |"
    return [head, "|---|---|---|---|---|---|", *(each.line(name) for name, each in found.items())]


def corpora(found: Mapping[str, tuple[Series, str]]) -> list[str]:
    """The table of corpus sizes."""
    lines = ["| | floor | sizes N | ms | growth |", "|---|---|---|---|---|"]
    for name, (series, floor) in found.items():
        times, counts = (" · ".join(f"{value:,.0f}" for value in part) for part in (series.times, series.sizes))
        lines.append(f"| {name} | {floor} | {counts} | {times} | {series.growth:.2f} |")
    return lines


ABOUT = f"""Random sentences. *Forward* and *backward* are the passes over one text of {FIXED_LENGTH} words that were
taken, parts of a text counted as parts. *ms a text*: of {FIXED_LENGTH} words, {FIXED_TEXTS} at a time. *Growth* is the
slope of log time in log size, from {LENGTHS[0]} to {LENGTHS[-1]} words and from {TEXTS[0]} to {TEXTS[-1]} texts: 1 is
linear, below 1 the larger batch is used better, 2 is what asking about every word of a text costs, since there are as
many questions as words and each reads them all. A series ends when one run takes more than {LONGEST:.0f} s."""
FIGURES = f"![Time over size on logarithmic axes](figures/{FIGURE.name})\n\n*Dashed: linear growth.*\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--models", default="bilstm")
    options = parser.parse_args()
    torch.set_num_threads(1)
    gpu = options.device == "cuda"
    where = f"{torch.cuda.get_device_name()}; torch {torch.__version__}" if gpu else machine()
    command = "python -m benchmarks.scaling" + (f" --device cuda --models {options.models}" if gpu else "")
    parts = [f"Made by `{command}` on {time.strftime('%Y-%m-%d')}: {where}.", "", ABOUT, ""]
    parts = ["## On a GPU", "", *parts] if gpu else parts
    for name in options.models.split(","):
        found = rows(MODELS[name](options.device), options.device)
        parts += [f"### {name}", "", *table(found), ""]
    if not gpu:
        grown = sizes.series()
        parts += [
            "### Corpus size",
            "",
            f"N texts, Q = {sizes.QUERIES} queries, a small BiLSTM.",
            "",
            *corpora(grown),
            "",
        ]
        named = {name: found[name] for name in SHOWN if name in found}
        words, texts = ({name: getattr(each, side) for name, each in named.items()} for side in ("words", "texts"))
        whole = {name: series for name, (series, _) in grown.items()}
        drawn({"words in a text": words, "texts": texts, "texts in the corpus": whole}, FIGURE)
        parts.append(FIGURES)
    put(PAGE, "\n".join(parts), "a GPU" if gpu else "growth")


if __name__ == "__main__":
    main()

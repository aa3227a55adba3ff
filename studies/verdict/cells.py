"""What a cell of the bank gives: its verified texts, and every explainer and measure on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Bool, Float, Int

from assay import progress
from assay.audits.cases import Case, numpy
from assay.audits.deciding import curves
from assay.audits.pairwise import Agreement
from assay.audits.word_erasure import Erasure
from assay.data.batches import Tokenised, by_tokens, collate, tokenise
from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.explainers.baselines import Random
from assay.explainers.needs import unfit
from assay.metrics import erasure
from assay.metrics.plausibility import average_precision
from assay.models.erasure import Pool
from assay.models.store import Opened, Trained
from assay.models.textmodel import predict
from assay.records import write_table
from assay.run.examination import explained, places, places_at_once
from assay.types import Batch, Explainer
from studies.verdict.bank import Cell
from studies.verdict.built import TASK
from studies.verdict.measures.fine_tuned_fidelity import FineTunedFidelity, fine_tuned
from studies.verdict.measures.several_out import SeveralOut
from studies.verdict.measures.soft_erasure import SoftErasure
from studies.verdict.truth import constructed, natural, verified

ASKED = (
    *("attention", "attention_x_gradient", "attention_x_value", "gradient", "gradient_norm", "input_x_gradient"),
    *("integrated_gradients", "smoothgrad", "lrp", "deeplift", "leave_one_out", "occlusion_mask", "rollout"),
    *("lime", "kernel_shap", "random"),
)
ERASED = ("comprehensiveness", "sufficiency", "log_odds", "flip", "morf", "lerf")
GAINS = tuple(f"{name}_gain" for name in ("comprehensiveness", "sufficiency", "flip", "morf"))
SHARES = tuple(f"{name}@{share:g}" for name in ERASED[:2] for share in erasure.THRESHOLDS)
TABLE, CURVES = "texts.parquet", "curves.npz"
SHUFFLES = 3  # random rankings beside those of the explainers
DRAWS = 8
VOCABULARY = "vocabulary "  # before the names of curves for which words are drawn from the vocabulary
Values = dict[str, Float[np.ndarray, "B E"]]
Measure = Callable[[Case], Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Measured:
    """Numbers for each text and explainer by the name of the measure, and the curves that some of them are made from.

    `precision` is the average precision for the words that decide; it means something where a text is `verified`.
    """

    names: tuple[str, ...]
    lengths: Int[np.ndarray, " N"]
    verified: Bool[np.ndarray, " N"]
    precision: Float[np.ndarray, "N E"]
    values: Values
    curves: dict[str, np.ndarray]


def make(wanted: Sequence[Cell], runs: Path, device: str, jobs: int) -> None:
    """Makes all cells, several side by side; one that fails is told of and left out."""
    wanted = sorted(
        wanted, key=lambda cell: ("imdb" in cell.corpus or cell.network == "minilm", cell.seed)
    )  # half a bank shows every family
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(made, cell, runs, device): cell for cell in wanted}
        for done in as_completed(waiting):
            try:
                progress.console.print(done.result(), highlight=False)
            except (AssayError, RuntimeError) as fault:
                progress.console.print(f"{waiting[done].name}: {fault}", highlight=False)


def made(cell: Cell, runs: Path, device: str) -> str:
    """The cell, in its folder; a sentence on it."""
    torch.set_num_threads(1)
    folder = runs / cell.name
    if (folder / TABLE).exists():
        return f"{cell.name}: there already"
    about, found = measured(cell, runs, device)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / CURVES, **found.curves)
    write_table(table(about, found), folder / TABLE)
    held = f"{about['verified']} of {about['texts']} texts verified"
    return f"{cell.name}: accuracy {about['accuracy']:.3f}, {held}, {about['seconds']:.0f} s"


def measured(cell: Cell, runs: Path, device: str = "cpu") -> tuple[dict[str, Any], Measured]:
    """What the model of a cell is, and what its test texts give; where it is `whole` by all measures."""
    started = monotonic()
    model, corpus = cell.made(runs, device)
    rows, _ = tokenise(corpus.test, model.tokeniser, model.tokeniser.options.longest)
    right = predict(model.network, rows).argmax(-1) == np.array([row.label for row in rows])
    tuned = (
        fine_tuned(model, corpus) if isinstance(model, Trained) and cell.whole and "recipe" in model.history else None
    )
    others: list[Measure] = [_erased, _agreeing, SeveralOut(), SoftErasure()] if cell.whole else []
    others += [] if tuned is None else [FineTunedFidelity(tuned)]
    pools = {"": Pool.of(rows)} | ({VOCABULARY: Pool.of_vocabulary(model)} if cell.whole else {})
    chosen = rows[: cell.texts]
    held = constructed(model, chosen) if cell.constructed else verified(model, chosen, natural(rows))
    found = _measured(model, chosen, held, others, pools)
    about = {
        "cell": cell.name, "family": cell.family, "corpus": corpus.name, "network": cell.network, "seed": cell.seed,
        "classes": len(model.classes), "accuracy": (accuracy := float(right.mean())),
        "task": model.history.get(TASK, accuracy) if isinstance(model, Trained) else accuracy,
        "texts": len(found.lengths), "length": float(found.lengths.mean()), "verified": int(found.verified.sum()),
        "device": str(model.device.type), "seconds": round(monotonic() - started, 1),
    }  # fmt: skip
    return about, found


def _measured(
    model: Opened,
    chosen: Sequence[Tokenised],
    held: Bool[np.ndarray, " N"],
    asked: Sequence[Measure],
    pools: Mapping[str, Pool],
) -> Measured:
    explainers = {name: EXPLAINERS[name] for name in ASKED if unfit(EXPLAINERS[name], model.network) is None}
    pools = {kind: pool.to(model.device) for kind, pool in pools.items()}
    lengths = np.array([places(row) for row in chosen])
    groups = by_tokens(lengths, places_at_once(model, int(lengths.max())))
    parts = []
    for group in groups:
        batch = collate([chosen[place] for place in group], len(model.classes)).to(model.device)
        parts.append(_batch(model, batch, explainers, asked, pools))
    own = np.argsort(np.concatenate(groups))
    precision, values, followed = zip(*parts, strict=True)
    return Measured(
        tuple(explainers),
        np.array([len(row.ids) for row in chosen]),
        held,
        np.concatenate(precision)[own],
        {name: np.concatenate([each[name] for each in values])[own] for name in values[0]},
        {name: np.concatenate([each[name] for each in followed])[own] for name in followed[0]},
    )


def _batch(
    model: Opened,
    batch: Batch,
    explainers: Mapping[str, Explainer],
    asked: Sequence[Measure],
    pools: Mapping[str, Pool],
) -> tuple[np.ndarray, Values, Values]:
    scores: dict[str, Any] = {}
    network = model.network
    case = Case(network, batch, scores, 0, explainers, True)
    for name, explainer in explainers.items():
        scores[name] = explained(explainer, network, batch, case.predicted).scores
    mask = batch.mask.cpu().numpy()
    truth = np.zeros_like(mask) if batch.truth is None else batch.truth.cpu().numpy()
    precision = np.stack([average_precision(numpy(each), truth, mask) for each in scores.values()], 1)
    answers: dict[str, np.ndarray] = {}
    for measure in asked:
        answers |= measure(case)
    names = dict.fromkeys(key.partition(":")[0] for key in answers)
    values = {name: np.stack([answers[f"{name}:{each}"] for each in scores], 1) for name in names}
    shuffled = [Random((1 << 33) + seed)(network, batch, case.predicted) for seed in range(SHUFFLES)]
    ranks = np.stack([erasure.ranks(numpy(each), mask) for each in (*scores.values(), *shuffled)], 1)
    followed = {kind: vars(curves(case, pool, ranks, DRAWS, 0)) for kind, pool in pools.items()}
    named = {f"{kind}{name}": value for kind, found in followed.items() for name, value in found.items()}
    return precision, values, named


def _erased(case: Case) -> Mapping[str, np.ndarray]:
    """The measures of the audit of erasure, without those that random rankings draw for themselves."""
    found = Erasure(masked=False)(case).measures
    return {f"{name}:{each}": found[f"{name}:{each}"] for name in (*ERASED, *GAINS, *SHARES) for each in case.scores}


def _agreeing(case: Case) -> Mapping[str, np.ndarray]:
    """Kendall's τ with leave-one-out, 1 for itself."""
    found, reference = Agreement()(case).measures, "leave_one_out"
    same = np.ones(len(case.batch))
    return {
        f"tau:{name}": found.get(f"tau:{name}~{reference}", found.get(f"tau:{reference}~{name}", same))
        for name in case.scores
    }


def table(about: Mapping[str, Any], found: Measured) -> pa.Table:
    """A row for each text and explainer: what the cell is, whether the truth holds, the precision, the measures."""
    texts, explainers = found.precision.shape
    columns: dict[str, Any] = {name: pa.array([value] * (texts * explainers)) for name, value in about.items()}
    columns["text"] = np.arange(texts).repeat(explainers)
    columns["words"] = found.lengths.repeat(explainers)
    columns["holds"] = found.verified.repeat(explainers)
    columns["explainer"] = list(found.names) * texts
    columns["precision"] = found.precision.ravel()
    columns |= {name: values.ravel() for name, values in found.values.items()}
    return pa.table(columns)

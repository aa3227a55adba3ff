"""Prints docs/peers-transformers.md: MiniLM beside captum and ferret's definitions; one run, one core."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from importlib.metadata import version

import torch
from captum.attr import FeatureAblation, IntegratedGradients
from torch import Tensor

from assay import costs
from assay.data.corpora import corpus
from assay.explainers import EXPLAINERS
from assay.explainers.integrated import FLOOR
from assay.explainers.integrated import IntegratedGradients as Ours
from assay.models.erasure import baseline
from assay.models.hf_loading import opened
from assay.models.hf_models import Pretrained
from assay.models.hf_subwords import SubwordTokeniser
from assay.types import Batch
from benchmarks import minilm, sixfold
from benchmarks.__main__ import machine

ROUNDS = 2  # the fastest of them counts: a machine that others use is never faster than it is
STEPS = (20, 30, 50)  # 50 is captum's default
Way = Callable[[Batch], Tensor]


def milliseconds(ways: dict[str, Way], texts: Sequence[Batch]) -> dict[str, tuple[float, list[Tensor]]]:
    """Processor time for one text, and the scores of all; the ways take turns, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    scores: dict[str, list[Tensor]] = {name: [way(text) for text in texts] for name, way in ways.items()}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.process_time()
            for text in texts:
                way(text)
            times[name].append(1000 * (time.process_time() - start) / len(texts))
    return {name: (min(times[name]), scores[name]) for name in ways}


def probability(model: Pretrained) -> Callable[..., Tensor]:
    """The model as captum wants it: embeddings first, one number for each row and class."""

    def answer(x: Tensor, ids: Tensor, mask: Tensor, subwords: Tensor) -> Tensor:
        return model(x, Batch(ids, mask, mask.new_zeros(len(mask), dtype=torch.long), subwords=subwords)).probabilities

    return answer


def ablation(model: Pretrained, together: int) -> Way:
    """captum's ablation of one word at a time by the mask's embedding, so many of them in one call of the model."""
    method = FeatureAblation(probability(model))

    @torch.no_grad()
    def explain(batch: Batch) -> Tensor:
        x = model.embed(batch)
        found: Tensor = method.attribute(
            x,
            baselines=baseline(model, batch, "mask"),
            target=batch.labels,
            additional_forward_args=(batch.ids, batch.mask, batch.subwords),
            feature_mask=torch.arange(x.shape[1])[None, :, None].expand(1, -1, x.shape[2]),
            perturbations_per_eval=together,
        )
        return found[..., 0]

    return explain


def path(model: Pretrained, steps: int) -> Way:
    """captum's integrated gradients from the zero baseline."""
    method = IntegratedGradients(probability(model))

    def explain(batch: Batch) -> Tensor:
        given = (batch.ids, batch.mask, batch.subwords)
        x = model.embed(batch).detach()
        found: Tensor = method.attribute(x, target=batch.labels, additional_forward_args=given, n_steps=steps)
        return found.sum(-1).detach()

    return explain


def ours(model: Pretrained, name: str) -> Way:
    return lambda batch: EXPLAINERS[name](model, batch, batch.labels)


def integrated(model: Pretrained, tolerance: float) -> Way:
    way = Ours(tolerance=tolerance)
    return lambda batch: way(model, batch, batch.labels)


def occlusions(model: Pretrained, texts: Sequence[Batch]) -> None:
    """Leaving out each word: the numbers of captum and ours agree where both mask it."""
    half = deepcopy(model).to(torch.bfloat16)
    runs = milliseconds(
        {
            "ours, deleted": ours(model, "occlusion"),
            "ours, masked": ours(model, "occlusion_mask"),
            "ours, deleted, bfloat16": ours(half, "occlusion"),
            "captum, masked, 64 at once": ablation(model, 64),
            "captum, masked, one by one": ablation(model, 1),
        },
        texts,
    )
    scores = {name: torch.cat(found) for name, (_, found) in runs.items()}
    for name in ("captum, masked, 64 at once", "captum, masked, one by one"):
        torch.testing.assert_close(scores[name], scores["ours, masked"], atol=1e-4, rtol=0)
    print("| leaving out each word | ms | ratio | furthest from ours in float32 |\n|---|---|---|---|")
    for name, (cost, _) in runs.items():
        against = scores["ours, deleted" if "deleted" in name else "ours, masked"]
        far = (scores[name] - against).abs().max()
        print(f"| {name} | {cost:.0f} | {cost / runs['ours, deleted'][0]:.1f}× | {far:.0e} |")


@torch.no_grad()
def gaps(model: Pretrained, texts: Sequence[Batch], scores: Sequence[Tensor]) -> Tensor:
    """How far the scores of each sentence are from adding up, related as in our own gap."""
    found = []
    for batch, each in zip(texts, scores, strict=True):
        x = model.embed(batch)
        ends = [model(place, batch).probabilities.gather(1, batch.labels[:, None])[:, 0] for place in (x, 0 * x)]
        found.append((each.sum(-1) - (ends[0] - ends[1])).abs() / (ends[0] - ends[1]).abs().clamp(min=FLOOR))
    return torch.cat(found)


def gradients(model: Pretrained, texts: Sequence[Batch], numbers: Sequence[int] = STEPS) -> None:
    """Integrated gradients: time, and how far the scores are from adding up."""
    ways = {f"ours, tolerance {tolerance:g}": integrated(model, tolerance) for tolerance in (1e-2, 1e-3)}
    runs = milliseconds(ways | {f"captum, {steps} steps": path(model, steps) for steps in numbers}, texts)
    first = next(iter(runs.values()))[0]
    print("| integrated gradients | ms | ratio | median gap | largest gap |\n|---|---|---|---|---|")
    for name, (cost, scores) in runs.items():
        gap = gaps(model, texts, scores)
        print(f"| {name} | {cost:.0f} | {cost / first:.1f}× | {gap.median():.0e} | {gap.max():.0e} |")


def sixes(model: Pretrained, text: Batch) -> None:
    """Six explainers and their evaluation on one sentence: the loop runs once, for it takes long."""
    half, loop = deepcopy(model).to(torch.bfloat16), sixfold.Loop(model, text)
    rows: dict[str, tuple[Callable[[], sixfold.Scores], Callable[[sixfold.Scores], sixfold.Numbers]]] = {
        "ours, LIME of 180 and SHAP of 180 reads": _six(model, text, 180, 180),
        "ours, LIME of 256 and all SHAP reads (the defaults)": _six(model, text, 256, 1024),
        "the first in bfloat16": _six(half, text, 180, 180),
        "the defaults in bfloat16": _six(half, text, 256, 1024),
        "ours, LIME of 1,024 and all SHAP reads": _six(model, text, 1024, 1024),
        "a plain loop with ferret's settings": (loop.explained, loop.evaluated),
    }
    print("| six explainers and three measures | explain, s | evaluate, s | together | ratio | texts read |")
    print("|---|---|---|---|---|---|")
    first = 0.0
    _agree(sixfold.evaluated, loop.evaluated, model, text)
    for name, (explain, evaluate) in rows.items():
        seconds, read = _clocked(explain, evaluate, 1 if "ferret" in name or "1,024" in name else ROUNDS)
        first = first or sum(seconds)
        cells = (
            name,
            *(f"{part:.2f}" for part in (*seconds, sum(seconds))),
            f"{sum(seconds) / first:.1f}×",
            f"{read:.0f}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


def _six(
    model: Pretrained, text: Batch, samples: int, reads: int
) -> tuple[Callable[[], sixfold.Scores], Callable[[sixfold.Scores], sixfold.Numbers]]:
    return lambda: sixfold.ours(model, text, samples, reads), lambda scores: sixfold.evaluated(model, text, scores)


def _agree(
    ours: Callable[..., sixfold.Numbers], loop: Callable[..., sixfold.Numbers], model: Pretrained, text: Batch
) -> None:
    """Checks that both evaluations say the same of an explanation."""
    scores = {name: EXPLAINERS[name](model, text, text.labels) for name in ("input_x_gradient", "occlusion", "random")}
    one, other = (torch.tensor(list(found.values())) for found in (ours(model, text, scores), loop(scores)))
    torch.testing.assert_close(one, other, atol=1e-4, rtol=0)


def _clocked(
    explain: Callable[[], sixfold.Scores], evaluate: Callable[[sixfold.Scores], sixfold.Numbers], rounds: int
) -> tuple[tuple[float, float], float]:
    """Processor seconds of both parts in the fastest round, and the texts that were read."""
    best, read = (float("inf"), 0.0), 0.0
    for _ in range(rounds):
        with costs.measured() as cost:
            start = time.process_time()
            scores = explain()
            middle = time.process_time()
            evaluate(scores)
            end = time.process_time()
        best, read = min(best, (middle - start, end - middle), key=sum), cost.forward
    return best, read


HEAD = """# Transformers beside captum and ferret's definitions

Made by `python -m benchmarks.transformers --trained FOLDER > docs/peers-transformers.md` on {date}: {machine},
captum {captum}, transformers {transformers}. Processor time for one text, the fastest of {rounds} rounds in which all
ways take turns.

The model is MiniLM (6 layers of 12 heads, 384 wide) with a classifier, all but its embeddings trained for 40 steps on
`planted:majority`, over four sentences of 30 words and marks. A word is one subword or several; all ways get the same
words, the same embeddings and the same model, so what differs is how often and how it is read.

## Leaving out each word

Both read a sentence 31 times. Deleted, the rest moves together; masked, as captum does it, the text keeps its length.
The scores of captum and ours agree to 1e-4 where both mask.
"""
PATHS = """
Nearly all of this is matrix products, which run here at about the speed of the processor: one thread has to
multiply some {products:.0f} thousand million times for a sentence, whoever asks. So in float32 ours and captum with 64
words at once are about equal; 200 ms were aimed at, and half precision is what reaches them.

## Integrated gradients

From the zero baseline. The gap is how far the scores of a text are from adding up to what they explain; compare rows of
equal largest gap: a fixed number of steps leaves it to chance which text gets how large a gap, ours goes on until each
is within the tolerance. First the four sentences; all are easy paths, where 30 steps do for each.
"""
TRAINED = """
Then 24 test sentences of `snippets` under a classifier that has really learnt (FOLDER is what
`assay train --model minilm --corpus snippets` left), where some paths are hard.
"""
SIXES = """
## Six explainers and their evaluation

Gradient, gradient × input, mean gradient along a path, integrated gradients, LIME and partition SHAP of one sentence,
then comprehensiveness and sufficiency at ten thresholds and Kendall's τ with leave-one-out for each. ferret 0.4.2
cannot be imported beside a current numpy; the last row is **not ferret but a loop of ours** with its settings: 50
steps, LIME with as many samples as tokens squared, 500 evaluations of SHAP, eight versions at once, leave-one-out anew
for each explainer. ferret itself took 28 s (24.2 and 4.15) for a sentence of this length when it was measured on one
thread in an older environment.

ferret itself is measured [in an environment of its own](performance.md). It masks words for LIME, reads 500 versions
for SHAP and has ten thresholds, as the loop does; of each explanation it takes only words with a score above 0.
"""
END = """
Where ours is faster it reads less. One path of 31 gradients serves two explainers, where the loop reads two of 50; this
is written in the benchmark. It deletes words, so a version is half as long on average, where the loop masks
them; it reads what several explainers leave of a text once, and leave-one-out once.
Given the same scores, both evaluations give the same numbers. The first row also draws fewer samples: its LIME is
noisier by the square root of their number, and its SHAP leaves the least important groups of words undivided. Both
numbers were chosen with 3 s in view. The row with LIME of 1,024 has about the loop's
sample counts.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trained", help="what `assay train --model minilm --corpus snippets` left")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model, tokeniser = minilm.model()
    texts = minilm.batches(model, tokeniser)
    given = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "rounds": ROUNDS}
    print(HEAD.format(**given, captum=version("captum"), transformers=version("transformers")))
    occlusions(model, texts)
    weights = sum(part.numel() for part in model.blocks.parameters())
    places = sum(int((text.subwords >= 0).sum()) + 2 for text in texts if text.subwords is not None) / len(texts)
    print(PATHS.format(products=weights * places * (texts[0].ids.shape[1] + 1) / 1e9))
    gradients(model, texts)
    if options.trained:
        learnt = opened(options.trained)
        assert isinstance(learnt.network, Pretrained)
        assert isinstance(learnt.tokeniser, SubwordTokeniser)
        sentences = [example.text for example in corpus("snippets").test[:24]]
        print(TRAINED)
        gradients(learnt.network, minilm.batches(learnt.network, learnt.tokeniser, sentences), (30, 50, 80))
    print(SIXES)
    sixes(model, texts[0])
    print(END)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=UserWarning, module="captum")
    main()

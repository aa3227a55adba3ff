"""How many gradients integrated gradients take by two rules: python -m benchmarks.quadrature.

Both cut a path in two until its gap is within the tolerance, from one piece on. Gauss–Legendre reads all nodes of a
piece anew, and the answers at its two ends once; Gauss–Lobatto has both ends among its nodes, and the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from assay.explainers.integrated import FLOOR, Path, lobatto
from benchmarks import minilm
from benchmarks.beside.making import turned

TOLERANCES, NODES, MOST, TURNED = (1e-2, 1e-3), (3, 5, 7, 9), 500, 2
Rule = Callable[[int], tuple[np.ndarray, np.ndarray]]


def legendre(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    places, weights = np.polynomial.legendre.leggauss(nodes)
    return (places + 1) / 2, weights / 2


RULES: dict[str, Rule] = {"Gauss–Legendre": legendre, "Gauss–Lobatto": lambda nodes: _numpy(lobatto(nodes))}


def _numpy(parts: tuple[torch.Tensor, torch.Tensor]) -> tuple[np.ndarray, np.ndarray]:
    return parts[0].numpy(), parts[1].numpy()


@dataclass
class Known:
    """What was read of one text's path so far; no point is read twice, and all of them count."""

    path: Path
    points: dict[float, tuple[float, float]] = field(default_factory=dict)

    def at(self, shares: np.ndarray) -> np.ndarray:
        """The probability and its gradient, summed over tokens, [N, 2]."""
        wanted = np.round(shares, 12).tolist()
        new = [share for share in dict.fromkeys(wanted) if share not in self.points]
        for part in (new[first : first + 8] for first in range(0, len(new), 8)):
            example = torch.zeros(len(part), dtype=torch.long)
            answers, gradients = self.path.read(example, torch.tensor(part, dtype=torch.float64))
            self.points |= dict(zip(part, zip(answers.tolist(), gradients.sum(-1).tolist(), strict=True), strict=True))
        return np.array([self.points[share] for share in wanted])


def taken(path: Path, rule: Rule, nodes: int, tolerance: float) -> tuple[int, int]:
    """Points that were read, and turns that were taken."""
    known, (places, weights) = Known(path), rule(nodes)
    pieces, settled, turns = [(0.0, 1.0)], 0.0, 0
    ends = known.at(np.array([0.0, 1.0]))[:, 0]
    scale = max(FLOOR, abs(ends[1] - ends[0]))
    while pieces:
        turns += 1
        gaps = []
        for low, width in pieces:
            change = np.diff(known.at(np.array([low, low + width]))[:, 0])[0]
            gaps.append(width * weights @ known.at(low + width * places)[:, 1] - change)
        enough = abs(settled + sum(gaps)) <= tolerance * scale or len(known.points) >= MOST
        wrong = [
            not enough and abs(gap) > tolerance * scale * width for gap, (_, width) in zip(gaps, pieces, strict=True)
        ]
        settled += sum(gap for gap, cut in zip(gaps, wrong, strict=True) if not cut)
        cut = [piece for piece, each in zip(pieces, wrong, strict=True) if each]
        pieces = [(low + side * width / 2, width / 2) for low, width in cut for side in (0, 1)]
    return len(known.points), turns


def main() -> None:
    model, tokeniser = minilm.model()
    texts = [turned(sentence, by) for by in range(TURNED) for sentence in minilm.SENTENCES]
    batches = minilm.batches(model, tokeniser, texts)
    paths = [Path.between(model, batch, batch.labels, "zero") for batch in batches]
    print(f"MiniLM, {len(texts)} sentences: mean reads and turns of a text, both ends included\n")
    print("| tolerance | nodes | " + " | ".join(RULES) + " |\n|---|---|" + "---|" * len(RULES))
    for tolerance in TOLERANCES:
        for nodes in NODES:
            cells = []
            for rule in RULES.values():
                reads, turns = np.mean([taken(path, rule, nodes, tolerance) for path in paths], axis=0)
                cells.append(f"{reads:.1f} reads, {turns:.1f} turns")
            print(f"| {tolerance} | {nodes} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

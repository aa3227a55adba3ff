"""Flow through layers of pipes, as a linear programme."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def largest_flow(layers, pooled, *places):
    """The maximum flow from the top to some places at the bottom, as a linear programme over all edges."""
    size = len(pooled)
    edges = [(("top", 0), (0, j), pooled[j]) for j in range(size)]
    for depth, layer in enumerate(reversed(layers)):
        edges += [((depth, i), (depth + 1, j), layer[i][j]) for i in range(size) for j in range(size)]
    inner = sorted({node for _, node, _ in edges} - {(len(layers), place) for place in places})
    kept = np.zeros((len(inner), len(edges)))  # what flows into a node flows out of it
    for column, (start, end, _) in enumerate(edges):
        if end in inner:
            kept[inner.index(end), column] += 1
        if start in inner:
            kept[inner.index(start), column] -= 1
    gain = [-float(start == ("top", 0)) for start, _, _ in edges]
    solved = linprog(gain, A_eq=kept, b_eq=np.zeros(len(inner)), bounds=[(0, float(room)) for *_, room in edges])
    return -solved.fun

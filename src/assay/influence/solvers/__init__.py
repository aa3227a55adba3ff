"""Linear solvers of (curvature + damping) x = v for many v at once."""

from __future__ import annotations

from assay.influence.solvers.arnoldi import Arnoldi
from assay.influence.solvers.conjugate import ConjugateGradients
from assay.influence.solvers.explicit import Explicit
from assay.influence.solvers.lissa import Lissa
from assay.influence.solvers.solution import Solve, Solved, Solver

SOLVERS: dict[str, Solver] = {
    "explicit": Explicit(),
    "cg": ConjugateGradients(),
    "lissa": Lissa(),
    "arnoldi": Arnoldi(),
}

__all__ = ["SOLVERS", "Arnoldi", "ConjugateGradients", "Explicit", "Lissa", "Solve", "Solved", "Solver"]

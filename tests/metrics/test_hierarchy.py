"""Cohesion from numbers that are easy to see through."""

from __future__ import annotations

import numpy as np

from assay.metrics.erasure import cohesion


def test_cohesion_is_the_mean_drop_over_shuffles():
    found = cohesion(np.array([0.9, 0.25]), np.array([[0.9, 0.5, 0.1], [0.5, 0.25, 0.0]]))
    np.testing.assert_allclose(found, [0.4, 0.0])

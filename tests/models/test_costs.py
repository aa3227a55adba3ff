"""Passes are counted where somebody counts."""

from __future__ import annotations

from threading import Thread

import pytest
import torch

from assay import costs
from assay.explainers import EXPLAINERS
from tests import builders


def spent(name, batch):
    with costs.measured() as cost:
        EXPLAINERS[name](builders.model(), batch, batch.labels)
    return cost.forward, cost.backward


def test_a_gradient_reads_each_text_once_each_way():
    assert spent("gradient", builders.batch()) == (4, 4)


def test_attention_never_reads_backward():
    assert spent("attention", builders.batch()) == (4, 0)


def test_nothing_is_counted_outside_the_block_or_by_an_inner_one():
    model, batch = builders.model(), builders.batch()
    with costs.measured() as outer:
        with costs.measured() as inner, torch.no_grad():
            model(model.embed(batch), batch)
        costs.add(backward=0.5)
    costs.add(forward=3)
    assert (outer.forward, outer.backward) == (0, pytest.approx(0.5))
    assert inner.forward == 4
    assert costs.current() is None


def test_a_way_back_that_another_thread_walks_is_counted():
    model, batch = builders.model(), builders.batch()
    with costs.measured() as cost:
        output = model(model.embed(batch), batch)
        walker = Thread(target=output.logits.sum().backward)
        walker.start()
        walker.join()
    assert (cost.forward, cost.backward) == (4, 4)

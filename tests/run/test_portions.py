"""How much of an audit is examined at once: by the model, by the device and its memory, by the length of texts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from assay.data.batches import tokenise
from assay.data.examples import Example
from assay.explainers.gradients import room
from assay.models.hf_body import COPIES, STATES, Body
from assay.models.store import Opened
from assay.run import auditing
from assay.run import examination as portions
from assay.run.auditing import audited
from assay.run.examination import MOST, SLOW, TOKENS, AuditPlan, places, places_at_once
from tests import builders, pretrained
from tests.pretrained import SMALL

GIBI = 1 << 30


def opened(**options: int) -> Opened:
    network = pretrained.pretrained("bert", classes=2, dtype=torch.float32, **options)
    return Opened(network, pretrained.tokeniser(), ("no", "yes"))


@pytest.fixture
def graphics(monkeypatch):
    """Makes every transformer seem to be on a GPU with that much memory."""

    def with_memory(size: int) -> None:
        monkeypatch.setattr(Body, "device", torch.device("cuda"))
        properties = SimpleNamespace(total_memory=size)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)

    return with_memory


def test_on_a_cpu_parts_are_small_for_transformers_and_larger_for_our_own_networks():
    assert places_at_once(opened(), 512) == SLOW
    assert places_at_once(Opened(builders.model(), pretrained.tokeniser(), ("no", "yes")), 512) == TOKENS


def test_a_gpu_takes_what_its_memory_holds(graphics):
    model = opened(num_hidden_layers=6)
    graphics(GIBI // 4)
    found = places_at_once(model, 512)
    assert SLOW < found < places_at_once(model, 256) < MOST
    graphics(GIBI // 2)
    assert places_at_once(model, 512) == pytest.approx(2 * found, abs=1)
    graphics(1000 * GIBI)
    assert places_at_once(model, 512) == MOST
    graphics(GIBI // 1000)
    assert places_at_once(model, 512) == SLOW


@pytest.mark.parametrize("architecture", pretrained.ARCHITECTURES)
def test_every_architecture_says_how_large_it_is(architecture, graphics):
    graphics(GIBI // 16)
    network = pretrained.pretrained(architecture, classes=2, dtype=torch.float32)
    found = places_at_once(Opened(network, pretrained.tokeniser(), ("no", "yes")), 60)
    layers, heads, size = (SMALL[name] for name in ("num_hidden_layers", "num_attention_heads", "hidden_size"))
    of_a_place = 4 * COPIES * layers * (heads * 60 + STATES * size)
    assert found == GIBI // 16 // of_a_place < MOST


def test_gradients_of_many_copies_are_read_as_far_as_the_memory_goes(graphics):
    """A way back keeps the states of all layers, so what a small GPU holds is less than what a large one is fed."""
    network, device = opened(num_hidden_layers=6).network, torch.device("cuda")
    graphics(1000 * GIBI)
    most = room(network, device)
    graphics(GIBI // 4)
    assert room(network, device, 100) == network.room(100) < room(network, device) == network.room() < most


def test_a_text_takes_as_many_places_as_it_and_its_question_have_pieces():
    texts = [Example("unwatchable", 0), Example("unwatchable", 0, query="a dull film")]
    rows, _ = tokenise(texts, pretrained.tokeniser(), 60)
    assert len(rows[0].ids) == 1
    alone, asked = map(places, rows)
    assert alone == int((rows[0].subwords >= 0).sum()) > 1
    assert asked == alone + 3


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_parts_of_another_size_are_not_taken_for_ones_own(tmp_path, monkeypatch):
    """As when an audit is interrupted on one machine, and goes on on another."""
    model, plan = opened(), AuditPlan(("attention", "random"), ("consistency",))
    texts = [Example(text, 0) for text in pretrained.TEXTS]
    whole = audited(model, texts, plan)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(portions, "SLOW", 12)
        patched.setattr(auditing, "summarised", interrupted)
        audited(model, texts, plan, tmp_path)
    resumed = audited(model, texts, plan, tmp_path)
    assert resumed.examples["text"].to_pylist() == whole.examples["text"].to_pylist() == list(pretrained.TEXTS)
    assert resumed.examples["score:random"] == whole.examples["score:random"]

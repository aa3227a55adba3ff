"""No more of the uppermost layer is worked out than the classifier reads, and the answer is the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests import pretrained as made

WHOLE = ("albert", "mpnet")  # one layer that is used several times; parts with other names
BRIEF = tuple(name for name in made.ARCHITECTURES if name not in WHOLE)


def answered(model, texts):
    """The logits, and the gradient of the first at the embeddings."""
    x = model.embed(texts).detach().requires_grad_()
    logits = model(x, texts).logits
    return logits.detach(), torch.autograd.grad(logits[:, 0].sum(), x)[0]


@pytest.mark.parametrize("architecture", made.ARCHITECTURES)
def test_which_architectures_are_read_briefly(architecture):
    assert made.pretrained(architecture).traits.brief == (architecture in BRIEF)


@pytest.mark.parametrize("architecture", BRIEF)
@pytest.mark.parametrize("queries", [None, ("Is it?", "Why not", "a film", "A")])
def test_a_brief_answer_is_the_whole_one(architecture, queries):
    model, texts = made.pretrained(architecture), made.batch(queries=queries)
    brief = answered(model, texts)
    model.traits = replace(model.traits, brief=False)
    for found, expected in zip(brief, answered(model, texts), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("architecture", BRIEF)
def test_the_uppermost_layer_is_worked_out_at_one_place_and_no_hook_is_left(architecture, monkeypatch):
    model, texts = made.pretrained(architecture), made.batch()
    widths = []
    inside = next(part for part in model.joint.modules() if any(True for _ in part.parameters(recurse=False)))
    forward = inside.forward

    def noted(given, *others):
        widths.append(given.shape[1])
        return forward(given, *others)

    monkeypatch.setattr(inside, "forward", noted)
    model(model.embed(texts), texts)
    model.layered(model.embed(texts), texts)
    assert widths[0] == 1 and widths[1] > 1
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.inner.modules())


@pytest.mark.parametrize("architecture", BRIEF)
def test_those_who_hook_themselves_in_are_shown_all_places(architecture):
    model, texts = made.pretrained(architecture), made.batch()
    width = model.sequence(model.embed(texts), texts).mask.shape[1]
    for part in (model.blocks[-1], model.inner.base_model):
        seen = []
        watch = part.register_forward_hook(lambda part, given, answer, seen=seen: seen.append(answer[0].shape[-2]))
        model(model.embed(texts), texts)
        watch.remove()
        assert seen == [width]


def test_a_copy_with_other_weights_answers_by_its_own():
    model, texts = made.pretrained("bert"), made.batch()
    model(model.embed(texts), texts)
    other = model.redrawn(3)
    whole = replace(other.traits, brief=False)
    brief = answered(other, texts)[0]
    other.traits = whole
    torch.testing.assert_close(brief, answered(other, texts)[0], atol=1e-10, rtol=1e-10)

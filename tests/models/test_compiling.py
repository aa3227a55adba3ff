"""A compiled transformer against the same one as it stands."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

from assay.explainers import EXPLAINERS
from assay.intervene import uniform
from assay.models.hf_attention import compiled
from assay.models.parallel import parallel
from tests import pretrained

BACKENDS = ["eager", pytest.param("inductor", marks=pytest.mark.slow)]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # torch looks at it while compiling
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("architecture", ["bert", pytest.param("gpt2", marks=pytest.mark.slow)])
def test_a_compiled_model_answers_explains_and_is_edited_as_before(architecture, backend):
    model, batch = pretrained.pretrained(architecture), pretrained.batch()
    names = ("input_x_gradient", "occlusion")

    def found():
        x = model.embed(batch)
        with torch.no_grad():
            return [
                model(x, batch).logits,
                model(x, batch, uniform).logits,
                *model.layered(x, batch).attention,
                *(EXPLAINERS[name](model, batch, batch.labels) for name in names),
            ]

    expected = found()
    compiled(model.inner, backend)
    for one, other in zip(found(), expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-10, rtol=1e-7)


@pytest.mark.slow
@torch.no_grad()
def test_a_copy_of_a_compiled_model_answers_by_its_own_weights():
    model, batch = pretrained.pretrained("bert"), pretrained.batch()
    x = model.embed(batch)
    plain = deepcopy(model)
    compiled(model.inner, "eager")
    before = model(x, batch).logits
    for each in (plain, copied := deepcopy(model)):
        for parameter in each.part("layer 0").parameters():
            parameter.mul_(0.5)
    torch.testing.assert_close(copied(x, batch).logits, plain(x, batch).logits)
    torch.testing.assert_close(model(x, batch).logits, before)
    assert not torch.allclose(copied(x, batch).logits, before)
    torch.testing.assert_close(parallel(copied, ("cpu", "cpu"))(x, batch).logits, plain(x, batch).logits)
    assert copied.facts == plain.facts

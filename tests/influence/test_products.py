"""Products of gradients over all parameters, against gradients side by side."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.data.batches import tokenise
from assay.data.corpora import corpus
from assay.data.text import Tokeniser
from assay.influence.setting import Setting
from assay.influence.similarity import query_gradients, train_products
from assay.models.config import Architecture
from assay.models.recipes import Recipe, initialise


@pytest.mark.parametrize("encoder", ["lstm", "transformer"])
def test_products_are_those_of_whole_gradients(encoder: str) -> None:
    texts = corpus("planted:keyword").train[:9]
    recipe = Recipe(Architecture(encoder=encoder, embedding=8, hidden=4, alignment_size=4))
    tokeniser = Tokeniser.fit([each.text for each in texts], recipe.text)
    rows, _ = tokenise(texts, tokeniser, 100)
    network = initialise(recipe, tokeniser, 2).double()
    setting = Setting.of(network, rows[:6], rows[6:])
    vectors = query_gradients(setting)

    def gradient(row: int, asked: bool) -> torch.Tensor:
        one = Setting.of(network, rows, [rows[row]], "margin" if asked else "loss")
        ((_, batch),) = one.batches(one.queries)
        logits = network(network.embed(batch), batch).logits
        value = logits[0, one.classes[0]] - logits[0, 1 - one.classes[0]]
        if not asked:
            value = torch.nn.functional.cross_entropy(logits, batch.labels)
        found = torch.autograd.grad(value, list(network.parameters()))
        return torch.cat([each.flatten() for each in found])

    expected = [[float(gradient(query, True) @ gradient(row, False)) for row in range(6)] for query in range(6, 9)]
    np.testing.assert_allclose(train_products(setting, vectors), expected, rtol=1e-9, atol=1e-14)

"""States that are tied to their words make attention matter: shuffled, it changes the answer more."""

from __future__ import annotations

import pytest

import assay


@pytest.mark.slow
def test_shuffled_attention_changes_the_answer_more_where_states_are_tied_to_their_words():
    """Tutek and Šnajder (2020); on five seeds the mean was .17 to .33 without tying and .45 to .52 with it."""
    corpus, found = assay.corpus("planted:keyword"), {}
    for tying in (0.0, 1.0):
        model = assay.train(corpus, encoder="lstm", embedding=32, hidden=16, epochs=6, tying=tying)
        assert model.history["best_dev"] > 0.99
        record = assay.audit(model, corpus, ["random"], ["permutation"], limit=100).record
        found[tying] = next(each.mean for each in record.findings if each.measure == "median_tvd")
    assert found[1.0] > found[0.0] + 0.1

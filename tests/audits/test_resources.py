"""What an audit can prepare itself with: models like the audited one, and work that is done once."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.audits.cases import PreparedAudit
from assay.audits.marked_words import Truth
from assay.audits.roar import Roar
from assay.audits.sanity import Sanity
from assay.audits.stability import Stability
from assay.models.store import fingerprint
from assay.models.workers import Variant
from tests.audits import small_resources


def test_only_audits_with_a_need_prepare_themselves():
    assert all(isinstance(audit, PreparedAudit) for audit in (Roar(), Sanity(), Stability()))
    assert not isinstance(Truth(), PreparedAudit)


def test_the_recipe_is_that_of_the_model():
    resources = small_resources.resources({})
    assert resources.recipe() == small_resources.RECIPE
    assert resources.lacks() is None


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (lambda model, corpus: {"corpus": None}, "not at hand"),
        (lambda model, corpus: {"corpus": replace(corpus, train=corpus.train[1:])}, "not at hand"),
        (lambda model, corpus: {"model": replace(model, history={})}, "not at hand"),
        (
            lambda model, corpus: {"model": replace(model, history=model.history | {"recipe": None})},
            "not known how",
        ),
    ],
)
def test_what_is_missing_is_said(changed, reason):
    changes = changed(small_resources.model(), small_resources.corpus())
    assert reason in replace(small_resources.resources({}), **changes).lacks()


def test_the_same_corpus_and_seed_give_the_same_model_and_another_seed_another(tmp_path):
    resources = small_resources.resources({}, tmp_path)
    again = resources.train(small_resources.corpus(), "again")
    seeded = replace(small_resources.RECIPE, training=replace(small_resources.RECIPE.training, seed=5))
    other = resources.train_all({"other": Variant(seeded)})["other"]
    assert fingerprint(again.network) == fingerprint(resources.model.network)
    assert fingerprint(other.network) != fingerprint(resources.model.network)
    assert other.tokeniser.vocabulary == resources.model.tokeniser.vocabulary
    assert sorted(path.name for path in (tmp_path / "retrained").iterdir()) == ["again", "other"]


def test_kept_work_is_done_once_and_only_for_the_same_question(tmp_path):
    resources, done = small_resources.resources({}, tmp_path), []
    work = lambda checkpoint: done.append(checkpoint) or [1, 2]  # noqa: E731
    assert resources.cached("sum", {"of": (1, 1)}, work) == resources.cached("sum", {"of": (1, 1)}, work) == [1, 2]
    assert len(done) == 1
    assert done[0].path.parent == tmp_path / "retrained" / "sum"
    assert resources.cached("sum", {"of": (1, 2)}, lambda checkpoint: [3]) == [3]


def test_without_a_folder_nothing_is_kept():
    resources, done = small_resources.resources({}), []
    for _ in range(2):
        assert resources.cached("sum", {}, lambda checkpoint: done.append(checkpoint) or 7) == 7
    assert done == [None, None]
    resources.clear()


def test_work_that_was_interrupted_is_not_taken_for_done(tmp_path):
    resources = small_resources.resources({}, tmp_path)

    def interrupted(checkpoint):
        checkpoint.save(torch.nn.Linear(1, 1), torch.optim.Adam([torch.zeros(1)]), {}, {})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        resources.cached("sum", {}, interrupted)
    assert resources.cached("sum", {}, lambda checkpoint: checkpoint.path.exists()) is True
    assert not list((tmp_path / "retrained" / "sum").iterdir())


def test_clearing_removes_all_that_was_trained(tmp_path):
    resources = small_resources.resources({}, tmp_path)
    resources.cached("sum", {}, lambda _: 1)
    (tmp_path / "summary.json").write_text("{}")
    resources.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]

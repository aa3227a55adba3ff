"""What other packages offer by entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

import assay
from assay import plugins
from assay.data.planted import PLANTED
from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.explainers.choice import chosen
from assay.run.api import listing
from assay.run.examination import AuditPlan


def mine(model, batch, target):
    """One for each word."""
    return batch.mask.float()


def keyword(seed):
    return PLANTED["planted:keyword"](seed)


@pytest.fixture
def offer(monkeypatch):
    """Makes it as if a package offered something."""
    plugins.offered.cache_clear()

    def offered(kind: str, name: str, value: str) -> None:
        group = plugins.GROUPS[kind]
        entry = EntryPoint(name, value, group)
        monkeypatch.setattr(plugins, "entry_points", lambda group: [entry] if group == entry.group else [])

    yield offered
    plugins.offered.cache_clear()


def test_an_explainer_of_another_package_is_found_by_its_name_and_listed(offer):
    offer("explainer", "mine", f"{__name__}:mine")
    assert chosen("mine", EXPLAINERS) is mine
    assert AuditPlan(("mine", "random")).chosen_explainers()["mine"] is mine
    assert "mine" not in EXPLAINERS
    assert listing("explainers")["mine"][0] == "One for each word."


def test_one_of_ours_stays_what_it_is(offer):
    offer("explainer", "random", "no.such.module:thing")
    assert chosen("random", EXPLAINERS) is EXPLAINERS["random"]


def test_a_corpus_of_another_package_is_made_by_the_seed(offer):
    offer("corpus", "theirs", f"{__name__}:keyword")
    assert assay.corpus("theirs", 3) == PLANTED["planted:keyword"](3)
    offer("corpus", "odd", "builtins:len")
    plugins.offered.cache_clear()
    with pytest.raises(AssayError, match="'odd' of another package cannot be made"):
        assay.corpus("odd")


@pytest.mark.parametrize("value", ["no.such.module:thing", "builtins:nothing_of_this_name"])
def test_what_cannot_be_loaded_is_one_sentence(offer, value):
    offer("audit", "broken", value)
    with pytest.raises(AssayError, match=r"The audit 'broken' of another package cannot be loaded .* uninstall it"):
        AuditPlan(audits=("broken",))


def test_a_name_that_nobody_has_is_suggested_among_all(offer):
    offer("method", "theirs", "no.such.module:thing")
    with pytest.raises(AssayError, match="Unknown method 'thers'; did you mean 'theirs'"):
        chosen("thers", assay.METHODS, "method")

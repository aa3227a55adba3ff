"""Many askers at once: all are answered, and those for whom there is no room are told to come back."""

from __future__ import annotations

import asyncio
import threading

import pytest

from assay.serve.safety import Limits
from benchmarks.serving import TEXTS, Asking, Load
from tests.serving import served


class Slow:
    """A live_model that holds every answer back until it is let go."""

    about = {"explainers": [{"name": "attention", "meaning": "", "why_not": None}], "usual": ["attention"], "trees": []}  # noqa: RUF012

    def __init__(self, held: bool = False) -> None:
        self.let_go, self.busy, self.at_once = threading.Event(), 0, 0
        if not held:
            self.let_go.set()

    def explain(self, text, query, explainers, target, tree=None):
        self.busy += 1
        self.at_once = max(self.at_once, self.busy)
        assert self.let_go.wait(30)
        self.busy -= 1
        return {"text": text, "scores": {"attention": [1.0]}}

    def attend(self, text, query, act):
        raise AssertionError


def test_ten_users_are_all_answered_and_one_by_one(tmp_path):
    live_model = Slow()
    with served({"it": live_model}, tmp_path) as address:
        load = asyncio.run(Asking(address, "it", ["attention"]).crowd(users=10, seconds=1.5))
    assert load.errors == 0
    assert set(load.statuses) == {200}
    assert len(load.seconds) == load.statuses[200] >= 10
    assert live_model.at_once == 1


def test_those_beyond_the_queue_are_sent_away_and_the_app_answers_afterwards(tmp_path):
    live_model = Slow(held=True)
    with served({"it": live_model}, tmp_path, limits=Limits(waiting=2)) as address:
        asking = Asking(address, "it", ["attention"])

        async def more_than_there_is_room_for() -> Load:
            load = Load()
            flood = asyncio.create_task(asking.flood(10, load))
            while load.statuses.total() < 8 and not flood.done():
                await asyncio.sleep(0.01)
            assert load.statuses == {503: 8}, "these need not wait for the model"
            live_model.let_go.set()
            return await flood

        load = asyncio.run(more_than_there_is_room_for())
        after = asyncio.run(asking.crowd(users=2, seconds=0.3))
    assert load.statuses == {503: 8, 200: 2}
    assert load.errors == 0, "a refusal says when to come back"
    assert set(after.statuses) == {200}


@pytest.mark.parametrize("fault", ["closed", "strange"])
def test_what_goes_wrong_is_counted(tmp_path, fault):
    with served({"it": Slow()}, tmp_path) as address:
        name = "it" if fault == "closed" else "nobody"
        asking = Asking(address, name, ["attention"])
        if fault == "strange":
            assert asyncio.run(asking.flood(3)).faults == {"status 404": 3}
    if fault == "closed":
        assert asyncio.run(asking.flood(3)).errors == 3


def test_the_texts_are_short():
    assert max(map(len, TEXTS)) < 100

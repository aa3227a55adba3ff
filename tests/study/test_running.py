"""Running a plan: each trial once, failures alone, and what is finished stays."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay.errors import AssayError
from assay.records import INSTANCES, Record
from assay.study import attempts, plans
from assay.study import attempts as trial_record
from assay.study import studying as running
from assay.study.attempts import Outcome, attempt, is_trained, work_folder
from assay.study.engines import Local
from assay.study.studying import run
from assay.study.trials import AuditSet, Folder, model_folder
from tests.study import small


def pretended(made: list[int]):
    """An engine that makes nothing up but results."""

    def engine(trials, place) -> Iterator[Outcome]:
        for trial in trials:
            made.append(trial.seed)
            reason = "it was odd" if trial.seed % 2 else None
            yield Outcome(trial, 0.5, reason, files=None if reason else small.files())

    return engine


@pytest.fixture
def plan(tmp_path: Path) -> plans.StudyPlan:
    return plans.read(small.planned(tmp_path))


def test_what_is_done_or_failed_is_not_made_again_unless_it_is_asked_for(tmp_path):
    made: list[int] = []
    trials = [small.trial(seed) for seed in range(4)]
    tally = run(trials, tmp_path, pretended(made))
    assert (tally.done, sorted(made)) == (2, [0, 1, 2, 3])
    assert list(tally.failed.values()) == ["it was odd"] * 2
    assert run([*trials, small.trial(4)], tmp_path, pretended(made)).done == 1
    assert made[4:] == [4]
    assert run(trials, tmp_path, pretended(made), retry=True).done == 0
    assert made[5:] == [1, 3]


def test_a_trial_that_is_there_twice_by_other_names_is_made_once(tmp_path):
    made: list[int] = []
    plan = small.grid(models={"a": {"hidden": 8}, "b": {"hidden": 8}})
    assert run(plan.trials, tmp_path, pretended(made)).done == 1
    assert len(plan.trials) == 2 and made == [0]


def test_a_damaged_result_is_made_again(tmp_path):
    made: list[int] = []
    run([small.trial()], tmp_path, pretended(made))
    (Folder(tmp_path).trial(small.trial()) / INSTANCES).write_bytes(b"")
    run([small.trial()], tmp_path, pretended(made))
    assert made == [0, 0]
    assert Folder(tmp_path).done(small.trial()) is not None


def test_who_finds_a_trial_claimed_waits_for_its_result_or_makes_it(tmp_path, monkeypatch):
    made: list[int] = []
    folder = Folder(tmp_path)
    locks = [folder.claim(small.trial(seed)) for seed in (0, 2)]

    def wait(_: float) -> None:
        assert made == [4]  # in the meantime, what nobody has
        if locks:  # the others get done with one, and are killed over the other
            folder.keep(small.trial(0), small.files(), {})
            for lock in locks:
                lock.release()
            locks.clear()

    monkeypatch.setattr(running.time, "sleep", wait)
    tally = run([small.trial(seed) for seed in (0, 2, 4)], tmp_path, pretended(made))
    assert made == [4, 2]
    assert (tally.done, tally.elsewhere) == (2, 1)


def test_every_claim_is_free_again_after_a_run(tmp_path):
    run([small.trial(seed) for seed in range(4)], tmp_path, pretended([]))
    assert not any(Folder(tmp_path).claimed(small.trial(seed)) for seed in range(4))


def test_a_stop_closes_the_engine_frees_what_was_claimed_and_keeps_what_is_done(tmp_path):
    folder, closed = Folder(tmp_path), []

    def engine(trials, place) -> Iterator[Outcome]:
        try:
            yield Outcome(next(trials), files=small.files())
            next(trials)
            raise KeyboardInterrupt
        finally:
            closed.append(folder.claimed(small.trial(1)))

    with pytest.raises(KeyboardInterrupt):
        run([small.trial(seed) for seed in range(3)], tmp_path, engine)
    assert closed == [True]  # others may have it only when nobody works on it any more
    assert not any(folder.claimed(small.trial(seed)) for seed in range(3))
    assert [folder.done(small.trial(seed)) is not None for seed in range(3)] == [True, False, False]


def test_a_full_disk_stops_the_run_and_is_no_fault_of_a_trial(tmp_path):
    def engine(trials, place) -> Iterator[Outcome]:
        for trial in trials:
            yield Outcome(trial, reason="the disk is full", full=True)

    with pytest.raises(AssayError, match="The disk is full; make room"):
        run([small.trial()], tmp_path, engine)
    assert Folder(tmp_path).reason(small.trial()) is None


def test_an_error_in_one_cell_is_a_failure_of_that_cell_alone(tmp_path):
    small.texts(tmp_path / "one_class.csv", labels=("no",))
    path = small.planned(tmp_path, small.PLAN.replace('["texts.csv"]', '["one_class.csv", "texts.csv"]'))
    plan, place = plans.read(path), tmp_path / "study"
    tally = run(plan.trials, place, small.here)
    assert tally.done == 2
    assert {title.partition(" · ")[0] for title in tally.failed} == {"one_class.csv"}
    assert all("class" in reason for reason in tally.failed.values())
    done = [trial for trial in plan.trials if trial.corpus.title == "texts.csv"]
    record = Folder(place).record(done[0])
    assert record.summary["corpus"]["name"] and record.findings
    assert not any(work_folder(place, trial).exists() for trial in plan.trials)


@pytest.mark.parametrize(
    ("fault", "reason", "full"),
    [
        (AssayError("It is so."), "It is so.", False),
        (MemoryError(), "not enough memory", False),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full", True),
        (ValueError("I/O error: No space left on device (os error 28)"), "the disk is full", True),
        (ValueError("two\n  lines"), "ValueError: two lines", False),
    ],
)
def test_whatever_is_raised_is_an_outcome(tmp_path, monkeypatch, fault, reason, full):
    def raising(*_):
        raise fault

    monkeypatch.setattr(attempts, "make_record", raising)
    outcome = attempt(small.trial(), tmp_path)
    assert (outcome.reason, outcome.full) == (reason, full)
    assert ("Traceback" in outcome.details) == (reason.startswith("ValueError"))


def test_damaged_work_and_a_damaged_model_are_put_aside_and_made_anew(plan, tmp_path):
    trial, place = plan.trials[0], tmp_path / "study"
    work = work_folder(place, trial)
    work.mkdir(parents=True)
    (work / "plan.json").write_text("{")
    assert attempt(trial, place).reason is None
    first = Folder(place).record(trial)
    model = model_folder(place, trial)
    assert is_trained(model)
    (model / "weights.safetensors").write_bytes(b"no weights")
    other = replace(trial, audit_set=AuditSet("other", ("random",), ("agreement",)))
    assert attempt(other, place).reason is None
    assert Folder(place).record(other).summary["model"]["sha256"] == first.summary["model"]["sha256"]
    assert {path.name for path in (place / "damaged").glob("*/*/*")} >= {"plan.json", "weights.safetensors"}


def test_work_that_ends_in_an_error_is_begun_anew_and_for_want_of_memory_goes_on(tmp_path, monkeypatch):
    work = work_folder(tmp_path, small.trial())
    for fault, left in ((MemoryError(), True), (ValueError("odd"), False)):
        work.mkdir(parents=True, exist_ok=True)

        def raising(*_, fault=fault):
            raise fault

        monkeypatch.setattr(attempts, "make_record", raising)
        attempt(small.trial(), tmp_path)
        assert work.exists() == left


def test_a_file_that_has_changed_since_is_not_taken_for_what_it_was(plan, tmp_path):
    small.texts(tmp_path / "texts.csv", rows=61)
    outcome = attempt(plan.trials[0], tmp_path / "study")
    assert "is not what it was when the study was planned" in str(outcome.reason)


def test_a_finished_model_and_one_trained_anew_are_put_to_the_same_audits(plan, tmp_path):
    trial, place = plan.trials[0], tmp_path / "study"
    assert attempt(trial, place).reason is None
    model_folder(place, trial).rename(tmp_path / "model")
    given = {"corpora": ["texts.csv"], "models": {"theirs": {"path": "model"}}, "seeds": [0]}
    asked = {"explainers": ["attention", "random"], "audits": ["agreement"], "limit": 4}
    (theirs,) = plans.plan_of({**given, "audits": asked}, tmp_path).trials
    assert attempt(theirs, place).reason is None
    assert Folder(place).record(theirs).findings == Folder(place).record(trial).findings


@pytest.mark.slow
def test_processes_and_one_process_come_to_the_same_numbers(plan, tmp_path):
    run(plan.trials, tmp_path / "here", small.here)
    run(plan.trials, tmp_path / "local", Local(2))
    for trial in plan.trials:
        records: list[Record] = [Folder(tmp_path / name).record(trial) for name in ("here", "local")]
        assert records[0].findings == records[1].findings
        assert records[0].instances.equals(records[1].instances)


def test_a_model_is_trained_once_for_all_who_need_it(plan, tmp_path, monkeypatch):
    learnt = []
    train = trial_record._learnt

    def counted(trial, corpus, folder, device):
        learnt.append(is_trained(folder))
        return train(trial, corpus, folder, device)

    monkeypatch.setattr(trial_record, "_learnt", counted)
    text = small.PLAN.replace("[audits]", "[audits.few]") + '\n[audits.other]\nexplainers = ["random"]\nlimit = 2\n'
    both = plans.read(small.planned(tmp_path, text.replace("[0, 1]", "[0]")))
    run(both.trials, tmp_path / "study", small.here)
    assert learnt == [False, True]

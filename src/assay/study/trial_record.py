"""Runs a trial: trains its model once for all trials that share it, then audits it."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock

from assay.data import corpora, datasets
from assay.data.examples import Corpus
from assay.data.matching import examples_for
from assay.data.subsets import thinned
from assay.errors import AssayError, Damaged
from assay.models import store
from assay.models.store import Opened
from assay.records import Record
from assay.run import verbs
from assay.run.audit import audit
from assay.study.entries import checked_hash
from assay.study.folder import Folder
from assay.study.trials import Trial, model_folder


def make_record(trial: Trial, place: Path, device: str = "cpu") -> Record:
    """The record of a trial; unfinished work is stored in `place`, and resumes there."""
    corpus = _corpus(trial)
    model = _model(trial, corpus, place, device)
    about = {"corpus": corpora.about(corpus, trial.corpus.title) | {"split": "test"}, "command": "assay study"}
    examples = examples_for(corpus, "test", model.classes)
    plan, work = trial.audit_set.plan(trial.seed), work_folder(place, trial)
    try:
        return audit(model, examples, plan, work, about, corpus)
    except Damaged:
        Folder(place).put_aside(work)
        return audit(model, examples, plan, work, about, corpus)


def work_folder(place: Path, trial: Trial) -> Path:
    """The folder of a trial's unfinished work."""
    return place / "work" / trial.identity


def _corpus(trial: Trial) -> Corpus:
    source = trial.corpus
    if source.sha256 is not None:
        checked_hash(Path(source.name), source.sha256)
    found = corpora.corpus(source.name, trial.data_seed, joined=source.joined)
    return found if source.train is None else thinned(found, source.train, trial.data_seed)


def _model(trial: Trial, corpus: Corpus, place: Path, device: str) -> Opened:
    kind = trial.kind
    if kind.sha256 is not None:
        checked_hash(Path(str(kind.path or kind.base)), kind.sha256)
    if kind.path is not None:
        return verbs.load(kind.path, device)
    folder = model_folder(place, trial)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):  # who comes second waits, and then only reads
        try:
            return _learnt(trial, corpus, folder, device)
        except AssayError as fault:
            if not (isinstance(fault, Damaged) or is_trained(folder)):
                raise
            Folder(place).put_aside(folder)  # it was finished or begun, and cannot be read any more
            return _learnt(trial, corpus, folder, device)


def _learnt(trial: Trial, corpus: Corpus, folder: Path, device: str) -> Opened:
    given = dict(trial.kind.options)
    if trial.kind.base is not None:
        base = trial.kind.base.removeprefix(datasets.PREFIX)
        return verbs.finetune(corpus, base, folder, **given, seed=trial.seed, device=device)
    from assay.models.recipes import train

    return train(corpus, verbs.recipe(seed=trial.seed, corpus=corpus.name, **given), folder, device)


def is_trained(folder: Path) -> bool:
    """Whether a folder holds a complete model: its card is written last."""
    from assay.models.hf_loading import CARD

    return (folder / CARD).exists() or (folder / store.CARD).exists()

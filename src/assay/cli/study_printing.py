"""`assay study` and its verbs: from a plan to trials, and what is printed of them."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.cli.options import EngineOptions, check_device
from assay.study import plans as plan_file
from assay.study import studying as estimating
from assay.study.engines import Engine, EngineSettings, Local, engine
from assay.study.plans import StudyPlan
from assay.study.studying import Comparison, Studied, compared, study
from assay.study.trials import Folder, TrialStatus, counted, reasons, trial_statuses

FEW = 5  # titles that are shown of many


def planned(place: Path, out: Path | None, options: EngineOptions, console: Console) -> None:
    """Prints the grid of a plan, what there is to do, and how long it may take."""
    plan, folder = plan_file.load(place, out)
    crew = _engine(options)
    found = trial_statuses(plan.trials, Folder(folder))
    _title(plan, folder, found, console)
    console.print(_grid(plan, found))
    left = [each.trial for each in found if each.state in ("missing", "under way")]
    if left:
        models = _number(estimating.untrained(left, folder), "model")
        console.print(_sentence(f"To make: {_number(len(left), 'trial')}, for which {models} to train."))
    jobs = crew.jobs if isinstance(crew, Local) else 1
    console.print(_sentence(_estimate(found, jobs)))
    _failures(found, folder, console)


def ran(place: Path, out: Path | None, options: EngineOptions, console: Console, retry: bool = False) -> None:
    """Runs what is missing, writes the tables, and prints how it went; trials that failed make the exit code 1."""
    made = study(place, out, _engine(options), retry_failed=retry)
    _title(made.plan, made.folder, made.trials, console)
    _written(made, console)
    _failures(made.trials, made.folder, console)
    if counted(made.trials)["failed"]:
        sys.exit(1)


def told(place: Path, out: Path | None, as_json: bool, console: Console) -> None:
    """Prints how far a study is."""
    plan, folder = plan_file.load(place, out)
    found = trial_statuses(plan.trials, Folder(folder))
    if as_json:
        print(json.dumps([_plain(each) for each in found], ensure_ascii=False, indent=1))
        return
    _title(plan, folder, found, console)
    console.print(_grid(plan, found))
    for each in found:
        if each.state == "under way":
            console.print(_sentence(f"Under way: {each.trial.title}"))
    if counted(found)["missing"]:
        console.print(_sentence(_estimate(found, max(1, counted(found)["under way"]))))
        console.print(_sentence(f"Go on: assay study {shlex.quote(str(place))}{_beside(out)}"))
    _failures(found, folder, console)


def held_together(first: Path, second: Path, console: Console) -> None:
    """Prints whether two studies came out the same; if not, the exit code is 1."""
    result = compared(first, second)
    only = f"{result.only_first} only in {first}, {result.only_second} only in {second}"
    console.print(_sentence(f"{_number(result.shared, 'trial')} in both, {only}."))
    console.print(_sentence(_verdict(result)))
    if not result.identical:
        sys.exit(1)


def _engine(options: EngineOptions) -> Engine:
    devices = tuple(each.strip() for each in (options.device or "").split(",") if each.strip())
    if options.engine == "local":
        for device in devices:
            check_device(device)
    wanted = EngineSettings(
        options.jobs, devices, options.retries, options.address, options.cpus, options.gpus, options.shared or None
    )
    return engine(options.engine, wanted)


def _grid(plan: StudyPlan, found: Sequence[TrialStatus]) -> Table:
    """Corpora and models, with how many trials of each are done, over seeds and audits."""
    known = {each.trial.identity: each for each in found}
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column()
    for kind in plan.models:
        table.add_column(kind.name)
    for corpus in plan.corpora:
        row = [Text(corpus.title)]
        for kind in plan.models:
            row.append(_cell([known[t.identity] for t in plan.trials if (t.corpus, t.kind) == (corpus, kind)]))
        table.add_row(*row)
    return table


def _cell(found: Sequence[TrialStatus]) -> Text:
    counts = counted(found)
    rest = [f"{counts[state]} {state}" for state in ("failed", "under way") if counts[state]]
    style = "red" if counts["failed"] else "green" if counts["done"] == len(found) else ""
    return Text(", ".join([f"{counts['done']} of {len(found)} done", *rest]), style=style)


def _title(plan: StudyPlan, folder: Path, found: Sequence[TrialStatus], console: Console) -> None:
    counts = ", ".join(f"{number} {state}" for state, number in counted(found).items() if number)
    console.print(_sentence(f"Study {plan.name} in {folder}: {_number(len(found), 'trial')}, {counts}."))


def _estimate(found: Sequence[TrialStatus], jobs: int) -> str:
    left = [each.trial for each in found if each.state in ("missing", "under way")]
    seconds = estimating.seconds_left(found, jobs)
    if seconds is None:
        work = ", ".join(estimating.work(left))
        return f"Time: nothing to judge it by yet, for no trial is done; to explain: {work}."
    if not left:
        return "Nothing is left to do." if not reasons(found) else "Nothing is left to do but what failed."
    done = _number(counted(found)["done"], "trial")
    return f"Time: {estimating.span(seconds)}, {jobs} at once, judged by the {done} done."


def _failures(found: Sequence[TrialStatus], folder: Path, console: Console) -> None:
    why = reasons(found)
    if not why:
        return
    for reason, titles in why.items():
        console.print(Text(f"Failed: {reason}", style="red"), soft_wrap=True)
        for title in titles[:FEW]:
            console.print(_sentence(f"  {title}"))
        if len(titles) > FEW:
            console.print(_sentence(f"  and {len(titles) - FEW} more"))
    console.print(_sentence(f"Try again: assay study retry-failed {shlex.quote(str(folder))}"))


def _written(made: Studied, console: Console) -> None:
    tables = {path.parent if path.parent != made.folder else path for path in made.paths if path.suffix != ".html"}
    for name, found in (
        ("Tables", sorted(tables, key=lambda path: path.suffix)),
        ("Page", [path for path in made.paths if path.suffix == ".html"]),
    ):
        if found:
            console.print(_sentence(f"{name}: {', '.join(map(str, found))}"))


def _verdict(result: Comparison) -> str:
    if not result.shared:
        return "Nothing can be compared."
    if result.largest is None:
        return f"All {result.findings} numbers are the same."
    first, second = (
        "nothing" if each is None else repr(each) for each in (result.largest.first, result.largest.second)
    )
    return (
        f"Numbers differ in {result.differing} of {_number(result.shared, 'trial')}; "
        f"the largest difference is {result.largest.size:g}, {first} and {second}, in {result.largest.where}."
    )


def _plain(each: TrialStatus) -> dict[str, object]:
    found = {"trial": each.trial.title, "identity": each.trial.identity, "state": each.state}
    return {**found, "reason": each.reason, "seconds": each.seconds}


def _number(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


def _beside(out: Path | None) -> str:
    return "" if out is None else f" --out {shlex.quote(str(out))}"


def _sentence(words: str) -> Text:
    return Text(words)

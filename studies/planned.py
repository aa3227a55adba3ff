"""Runs the plan of a study, and keeps what came of it beside the plan: findings, tables, figures and a page.

    ASSAY_DATA=folder python -m studies.planned minimal_sets [--out runs/minimal-sets] [--jobs 2] [--device cuda]

`results/` gets every finding and every table with its tests, `figures/` a panel for each corpus and question, and
README.md a table for each question. What is finished is kept in the folder of the study, so an interrupted run goes on.
`--trials` stops before the page, for a machine that cannot draw: the same command makes it where `OUT/trials` is
copied to. `--only 'sst · *'` makes the trials with these titles alone, without the page. `--earlier 'sst · *'` makes
none of these: those that OUT has not stand as `results/` has them, and the page says how many. `--page` makes nothing:
page, tables and figures come from `results/`, without what has no findings there.
Where a study has a command of its own, its page is that command's: its plan is for `assay study`.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

from assay.document import Cell, Words, plain
from assay.files import write_text
from assay.report.markdown import text
from assay.study import plans as plan_file
from assay.study import results as words
from assay.study.engines import Local
from assay.study.plans import NAME, StudyPlan, read
from assay.study.questions import Finished, Found, answered, earlier, finished, questions
from assay.study.results import Answer
from assay.study.study_page import answers as answers_table
from assay.study.studying import FINDINGS, TABLES, named, run, write
from assay.study.trials import Folder, Trial
from studies.pages import made_from, put, standing

HERE = Path(__file__).parent
RESULTS = "results"
FEW = 4  # subjects that have a column each; of more, each has a row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=plans())
    parser.add_argument("--out", type=Path, help="the folder of the study; without it runs/ and the plan's name")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--trials", action="store_true", help="run the trials alone, without the page")
    parser.add_argument("--only", nargs="+", metavar="TITLE", help="these trials alone, with * and ?, without the page")
    parser.add_argument("--earlier", nargs="+", metavar="TITLE", default=(), help="these stand as results/ has them")
    parser.add_argument("--page", action="store_true", help="make nothing, and write the page from results/")
    options = parser.parse_args()
    if options.page:
        again(HERE / options.study)
        return
    plan = read(HERE / options.study / NAME)
    place = options.out or plan_file.RUNS / plan.name
    plan_file.store(plan, place, HERE / options.study / NAME)
    old = chosen(plan.trials, options.earlier)
    trials = chosen([trial for trial in plan.trials if trial not in old], options.only or ("*",))
    run(trials, place, Local(options.jobs, devices=(options.device,)))
    if not (options.trials or options.only):
        publish(plan, place, HERE / options.study, old)


def plans() -> list[str]:
    """The studies that consist of a plan alone."""
    folders = (path.parent for path in HERE.glob(f"*/{NAME}"))
    return sorted(folder.name for folder in folders if not (folder / "__main__.py").exists())


def chosen(trials: Sequence[Trial], patterns: Sequence[str]) -> list[Trial]:
    """The trials whose titles match one of the patterns."""
    return [trial for trial in trials if any(fnmatchcase(trial.title, pattern) for pattern in patterns)]


def publish(plan: StudyPlan, place: Path, target: Path, old: Sequence[Trial] = ()) -> None:
    """Puts what came of a plan in the folder `place` beside the plan in `target`.

    The `old` trials stand as they are there already, where the folder has none.
    """
    folder = Folder(place)
    found = finished(plan.trials, folder)
    lacking = [trial for trial in old if not isinstance(found[trial.identity], Finished)]
    stand = earlier(lacking, target / RESULTS / FINDINGS) if lacking else {}
    summaries = [folder.record(trial).summary for trial in plan.trials if folder.done(trial) is not None]
    how = made_from(f"studies.planned {target.name}", summaries) if summaries else ""
    rest = f"{len(stand)} of the {len(plan.trials)} trials stand as an earlier run left them." if stand else ""
    _put(plan, folder, target, found | stand, " ".join(filter(None, (how, rest))))


def again(target: Path) -> None:
    """Page, tables and figures from the findings in `target`; corpora and questions without any are left out."""
    plan = read(target / NAME)
    found: Found = earlier(plan.trials, target / RESULTS / FINDINGS)
    known = {trial.corpus.title for trial in plan.trials if trial.identity in found}
    answered_by = {key[::2] for each in found.values() if isinstance(each, Finished) for key in each.findings}
    plan = replace(
        plan,
        corpora=tuple(each for each in plan.corpora if each.title in known),
        questions=tuple(each for each in plan.questions if (each.audit, each.measure) in answered_by),
    )
    with TemporaryDirectory() as place:
        every: Found = {trial.identity: found.get(trial.identity, "not run") for trial in plan.trials}
        _put(plan, Folder(Path(place)), target, every, standing(target / "README.md").partition("\n")[0])


def _put(plan: StudyPlan, folder: Folder, target: Path, found: Found, how: str) -> None:
    """Writes what was found into the folder, and beside the plan."""
    write(plan, folder, found)
    results = target / RESULTS
    results.mkdir(exist_ok=True)
    for made in (results / TABLES, target / "figures"):
        shutil.rmtree(made, ignore_errors=True)  # of questions that are asked no more
    shutil.copyfile(folder.place / FINDINGS, results / FINDINGS)
    shutil.copytree(folder.place / TABLES, results / TABLES)
    blocks = [how]
    for number, question in enumerate(questions(plan), start=1):
        answer = answered(question, plan, found)
        name = named(number, answer)
        blocks += [f"### {text(answer.title)}", text(words.measured(answer)), _said(answer)]
        blocks += _shown(answer, _drawn(answer, name, target / "figures"))
        blocks.append(f"With intervals and tests: [table]({RESULTS}/{TABLES}/{name}.md).")
    put(target / "README.md", "\n\n".join(filter(None, blocks)) + "\n")


def table(heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A Markdown table whose first column has no head."""
    lines = [["", *heads], ["---"] * (len(heads) + 1), *([name, *cells] for name, cells in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shown(answer: Answer, figures: Mapping[str, str]) -> Iterator[str]:
    """The means, with a sign where a difference holds: few subjects side by side, many in a table for each corpus."""
    table_rows = (row.cells for row in answers_table(answer).rows)
    rows = [(text(plain(name)), [_cell(each) for each in cells]) for name, *cells in table_rows]
    if 0 < len(rows) <= FEW:
        turned = zip(*(cells for _, cells in rows), strict=True)
        places = [text(column.title) for column in answer.columns]
        yield table([name for name, _ in rows], zip(places, turned, strict=True))
        yield " ".join(figures.values())
        return
    for corpus in dict.fromkeys(column.corpus for column in answer.columns):
        held = [place for place, column in enumerate(answer.columns) if column.corpus == corpus]
        heads = [text(" · ".join(filter(None, (answer.columns[at].model, answer.columns[at].asked)))) for at in held]
        yield f"**{text(corpus)}**"
        yield table(heads, [(name, [cells[place] for place in held]) for name, cells in rows])
        yield figures.get(corpus, "")


def _cell(cell: Words | Cell) -> str:
    """A mean with the sign of its difference, or the word for why there is none."""
    mark = plain(cell.mark).partition(" ")[0] if isinstance(cell, Cell) else ""
    return " ".join(filter(None, (plain(cell.text if isinstance(cell, Cell) else cell), mark)))


def _said(answer: Answer) -> str:
    return text(" ".join(filter(None, (words.sentence(answer), words.legend(answer), words.based(answer)))))


def _drawn(answer: Answer, name: str, figures: Path) -> dict[str, str]:
    """Writes a panel for each corpus, and gives what shows it, by corpus."""
    from assay.report.canvas import svg
    from assay.study.study_panels import study_panels as panels

    figures.mkdir(exist_ok=True)
    links: dict[str, str] = {}
    for number, (corpus, figure) in enumerate(panels(answer), start=1):
        path = figures / f"{name}-{number}.svg"
        write_text(path, svg(figure))
        links[corpus] = f"{links.get(corpus, '')} ![{text(corpus)}]({figures.name}/{path.name})".strip()
    return links


if __name__ == "__main__":
    main()

"""Routes that list, show and compare finished audits, and put their figures side by side."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from starlette.exceptions import HTTPException

from assay.audits import AUDITS
from assay.document import MARKS
from assay.errors import AssayError
from assay.grading.grade import CAPTION, yardstick
from assay.report import html
from assay.report.audit import verdict_table
from assay.report.canvas import Figure
from assay.report.facts import facts, left_out, origins
from assay.report.outcome import outcome
from assay.report.sections import captions
from assay.report.tables import MANY
from assay.serve.library import FILES, SORTS, Library, Run, RunFilter, browse, figures_of, plain
from assay.serve.live import LiveModel
from assay.serve.pages import KINDS, RenderCache, page, policy_of
from assay.stories import story_of

MOST = 12  # runs side by side
OFFERED = 50  # runs that the plot browser offers beside those that are chosen
LONG = 2000  # letters of a fact
PICTURE = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"

router = APIRouter()
Ids = Annotated[list[str], Query(max_length=100)]
Words = Annotated[str, Query(max_length=400)]


def library(request: Request) -> Library:
    """The app's library of runs, shared by all requests."""
    state = request.app.state
    if not hasattr(state, "library"):
        state.library = Library(state.settings.folders)
    return state.library  # type: ignore[no-any-return]


def render_cache(request: Request) -> RenderCache:
    """The app's render cache, shared by all requests."""
    state = request.app.state
    if not hasattr(state, "render_cache"):
        state.render_cache = RenderCache()
    return state.render_cache  # type: ignore[no-any-return]


Runs = Annotated[Library, Depends(library)]
Renders = Annotated[RenderCache, Depends(render_cache)]


def _found(runs: Runs, id: str) -> Run:
    """The run that the address names."""
    if (run := runs.run(id)) is None:
        raise HTTPException(404)
    return run


def _chosen(runs: Runs, run: Ids = []) -> list[Run]:  # noqa: B006
    """The runs that the address names, without duplicates, in its order."""
    found = [runs.run(id) for id in dict.fromkeys(run)]
    there = [each for each in found if each is not None]
    if len(there) < len(found):
        raise AssayError("Some of the runs that were chosen are not there any more; choose again.")
    return there


Found = Annotated[Run, Depends(_found)]
Chosen = Annotated[list[Run], Depends(_chosen)]


@router.get("/runs")
def runs_page(
    request: Request,
    runs: Runs,
    search: Words = "",
    corpus: Words = "",
    model: Words = "",
    grade: Words = "",
    sort: Words = "newest",
    number: Annotated[int, Query(alias="page", ge=1, le=10**6)] = 1,
    run: Ids = [],  # noqa: B006
) -> HTMLResponse:
    """The list of runs, filtered; the selection is kept across pages."""
    wanted = RunFilter(search, corpus, model, grade, sort or "newest", number)
    listing = runs.look()
    answer = browse(listing.runs, wanted)
    chosen = {each.id for each in listing.runs} & set(run)
    return page(
        "runs.html.jinja",
        "/runs",
        wanted=wanted,
        answer=answer,
        listing=listing,
        chosen=chosen,
        elsewhere=[each for each in listing.runs if each.id in chosen and each not in answer.runs],
        sorts={name: words for name, (words, _, _) in SORTS.items()},
        marks=MARKS,
        most=MOST,
        home=shlex.quote(str(request.app.state.settings.home / "first")),
    )


@router.get("/runs/{id}")
def run_page(request: Request, run: Found, renders: Renders) -> HTMLResponse:
    """One run: its verdict, what was audited, and its files."""
    record = run.judged()
    return page(
        "run.html.jinja",
        "/runs",
        run=run,
        outcome=outcome(record),
        rule=yardstick(record),
        verdicts=html.fragment([verdict_table(record)]),
        marks=MARKS,
        many=len(run.explainers) > MANY,
        told=_description(renders.figure(run, "verdict")),
        files=FILES,
        figures=list(run.figures.items()),
        report=f"assay report {shlex.quote(str(run.folder))}",
        made=plain(record.summary.get("command") or "", LONG),
        live=_live(run, (record.summary.get("model") or {}).get("sha256"), request.app.state.live_models),
        revive=_command(run),
        link=urlencode,
        facts=_short(facts(record)),
        origins=_short(origins(record)),
        left_out=_short(left_out(record)),
    )


@router.get("/runs/{id}/report")
def report_page(run: Found, renders: Renders) -> HTMLResponse:
    """The report, as `assay report` writes it."""
    return _whole(renders.report(run))


@router.get("/runs/{id}/files/{name}")
def run_file(run: Found, name: str) -> FileResponse:
    """One of a run's three files."""
    if name not in FILES:
        raise HTTPException(404)
    kind = "application/json" if name.endswith(".json") else "application/vnd.apache.parquet"
    return FileResponse(run.file(name), media_type=kind, filename=f"assay-{run.id}-{name}")


@router.get("/runs/{id}/figures/{file}")
def run_figure(run: Found, renders: Renders, file: str, download: bool = False) -> Response:
    """A figure of a run: an SVG for a page, or a file for a paper."""
    name, _, ending = file.rpartition(".")
    if name not in run.figures or ending not in KINDS:
        raise HTTPException(404)
    on_page = ending == "svg" and not download
    image = renders.shown(run, name) if on_page else renders.saved(run, name, ending)
    if image is None:
        raise HTTPException(404)
    headers = {"content-security-policy": PICTURE}
    if not on_page:
        headers["content-disposition"] = f'attachment; filename="assay-{run.id}-{name}.{ending}"'
    return Response(image, media_type=KINDS[ending], headers=headers)


@router.get("/compare")
def compare_page(chosen: Chosen, renders: Renders) -> HTMLResponse:
    """Several runs side by side, as `assay report A B C` writes them."""
    if not 2 <= len(chosen) <= MOST:
        raise AssayError(f"Choose 2 to {MOST} runs to compare; {len(chosen) or 'none'} chosen here.")
    return _whole(renders.comparison(chosen))


@router.get("/plots")
def plots_page(runs: Runs, renders: Renders, chosen: Chosen, figure: Words = "verdict") -> HTMLResponse:
    """One figure of several runs side by side."""
    if len(chosen) > MOST:
        raise AssayError(f"Choose at most {MOST} runs for the plots; {len(chosen)} were chosen.")
    others = [each for each in runs.runs() if each not in chosen]
    every = figures_of(map(story_of, AUDITS.values()))
    every |= {name: title for each in [*others, *chosen] for name, title in each.figures.items()}
    if figure not in every:
        raise AssayError("There is no figure of this name; choose one from the list.")
    titles = {name: title for each in chosen or others for name, title in each.figures.items()}
    known = [name for name in every if name in titles]
    drawn = [(each, renders.figure(each, figure)) for each in chosen]
    told = captions(renders.record(chosen[0])) if chosen else {}
    place = known.index(figure) if figure in known else None
    return page(
        "plots.html.jinja",
        "/runs",
        figure=figure,
        title=every[figure],
        figures=[(name, every[name]) for name in dict.fromkeys([*known, figure])],
        before=known[place - 1] if place else None,
        after=known[place + 1] if place is not None and place + 1 < len(known) else None,
        drawn=[(each, _description(made)) for each, made in drawn],
        caption=told.get(figure, CAPTION if figure == "verdict" else ""),
        chosen=chosen,
        others=others[:OFFERED],
        more=len(others) > OFFERED,
        kinds=list(KINDS),
        commands=[f"assay figures {shlex.quote(str(each.folder))}" for each in chosen],
        link=lambda name: "/plots?" + urlencode([("figure", name), *(("run", each.id) for each in chosen)]),
        choose="/runs?" + urlencode([("run", each.id) for each in chosen]),
        most=MOST,
    )


def _whole(made: str) -> HTMLResponse:
    """A self-contained page with its own Content-Security-Policy."""
    return HTMLResponse(made.encode("utf-8", "replace"), headers={"content-security-policy": policy_of(made)})


def _short(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(plain(name, LONG), plain(text, LONG)) for name, text in pairs]


def _description(figure: Figure | None) -> str | None:
    """A text description of a figure, for screen readers."""
    return None if figure is None else str(figure.to_dict().get("description") or "A figure without a description.")


def _live(run: Run, weights: str | None, live_models: Mapping[str, LiveModel]) -> str | None:
    """The name of the live model that the run audited, by its folder or its weights, or None."""
    for name, live_model in live_models.items():
        same = weights is not None and live_model.about.get("sha256") == weights
        if same or Path(name).resolve() in _models(run):
            return name
    return None


def _models(run: Run) -> list[Path]:
    """The folder in which an audit stores its model."""
    return [run.folder / "model", run.folder.parent / "model"]


def _command(run: Run) -> str | None:
    """The command that serves the run's model, where it lies beside the run."""
    model = next((folder for folder in _models(run) if folder.is_relative_to(run.root) and folder.is_dir()), None)
    return f"assay serve {shlex.quote(str(run.root))} --model {shlex.quote(str(model))}" if model else None

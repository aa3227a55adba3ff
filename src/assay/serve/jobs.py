"""Routes of the Jobs page: the page, the JSON API that starts, stops and lists audits, and their event stream."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse

from assay.audits import AUDITS, COSTLY, USUAL_AUDITS
from assay.audits.cases import question
from assay.errors import AssayError
from assay.explainers import EXPLAINERS, USUAL
from assay.serve.job_runner import JobRunner, duration
from assay.serve.job_store import OPEN, RUN, TRAIN, Job, Order, corpora
from assay.serve.pages import page
from assay.serve.runs import Runs
from assay.serve.safety import SizeLimitedRoute
from assay.serve.uploads import KINDS, Uploads

router = APIRouter(route_class=SizeLimitedRoute)


def _runner(request: Request) -> JobRunner:
    """The app's runner of jobs."""
    return request.app.state.job_runner  # type: ignore[no-any-return]


Runner = Annotated[JobRunner, Depends(_runner)]


def _found(runner: Runner, id: str) -> Job:
    """The job that the address names."""
    if (job := runner.job_store.get(id)) is None:
        raise HTTPException(404)
    return job


Found = Annotated[Job, Depends(_found)]
EPOCH = re.compile(r"epoch (\d+)/(\d+)")
LOOK = 0.25  # seconds between two looks at a job that is watched
BREATH = 15.0  # seconds after which a silent stream says that it is alive
LONGEST = 60.0  # seconds of one stream; the browser then asks for another


@router.get("/jobs")
def jobs_page(request: Request) -> HTMLResponse:
    """The page; the open job is in its address."""
    limits = request.app.state.settings.limits
    return page(
        "jobs.html.jinja",
        "/jobs",
        limits=limits,
        kinds=KINDS,
        models=list(request.app.state.live_models),
        train=TRAIN,
        corpora=corpora(),
        explainers={name: _first(each.__doc__) for name, each in EXPLAINERS.items()},
        audits={name: _first(question(each)) for name, each in AUDITS.items()},
        costly=list(COSTLY),
        usual=(*USUAL, *USUAL_AUDITS),
    )


@router.get("/jobs/{id}/report")
def report(runner: Runner, job: Found, runs: Runs) -> RedirectResponse:
    """Redirects to the run that a job has produced."""
    folder = (runner.job_store.place(job) / RUN).resolve()
    found = next((run.id for run in runs.runs() if run.folder == folder), None)
    if found is None:
        raise HTTPException(404)
    return RedirectResponse(f"/runs/{found}", 303)


@router.get("/api/jobs")
def listed(runner: Runner) -> dict[str, Any]:
    """All jobs, newest first."""
    return {"jobs": [job_json(runner, job) for job in reversed(runner.job_store.all())]}


@router.post("/api/jobs", status_code=201)
def ask(request: Request, runner: Runner, order: Order) -> dict[str, Any]:
    """Queues an audit."""
    uploads: Uploads = request.app.state.uploads
    if order.upload is None:
        return job_json(runner, runner.submit(order, order.corpus or "", lambda folder: None))
    id = order.upload
    if (file := uploads.get(id)) is None:
        raise AssayError("The file is not here any more; choose it again.")
    order.check_columns([column["name"] for column in file["columns"]])
    known = order.model_copy(update={"kind": file["kind"]})
    job = runner.submit(known, file["name"], lambda folder: uploads.bring(id, known.kind, folder))
    return job_json(runner, job)


@router.get("/api/jobs/{id}")
def one(runner: Runner, job: Found) -> dict[str, Any]:
    """One job, with the end of its log."""
    return job_json(runner, job) | {"log": runner.job_store.log(job)}


@router.post("/api/jobs/{id}/cancel")
def cancel(runner: Runner, job: Found) -> dict[str, Any]:
    return job_json(runner, runner.cancel(job))


@router.post("/api/jobs/{id}/resume")
def resume(runner: Runner, job: Found) -> dict[str, Any]:
    return job_json(runner, runner.resume(job))


@router.delete("/api/jobs/{id}")
def remove(runner: Runner, job: Found) -> dict[str, Any]:
    """Deletes a finished job with its files."""
    runner.job_store.remove(job)
    return {}


@router.get("/api/jobs/{id}/events")
async def events(request: Request, runner: Runner, job: Found) -> StreamingResponse:
    """Server-sent events: the job at each change, until it ends."""
    last = request.headers.get("last-event-id", "")
    first = int(last) + 1 if last.isdecimal() and len(last) < 10 else 1
    return StreamingResponse(_stream(runner, job.id, first), media_type="text/event-stream")


async def _stream(runner: JobRunner, id: str, number: int) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    before, silent, clock = "", 0.0, asyncio.get_running_loop().time
    end = clock() + LONGEST
    while clock() < end and not runner.closing:
        job = runner.job_store.get(id)
        if job is None:
            return
        if (now := json.dumps(job_json(runner, job))) != before:
            yield f"id: {number}\ndata: {now}\n\n"
            before, silent, number = now, 0.0, number + 1
        elif silent >= BREATH:
            yield ": still here\n\n"
            silent = 0.0
        if job.state not in OPEN:
            return
        await asyncio.sleep(LOOK)
        silent += LOOK


def job_json(runner: JobRunner, job: Job) -> dict[str, Any]:
    """A job as JSON for the page."""
    progress = overall_progress(runner.job_store.progress(job)) if job.state == "running" else None
    waiting = [each.id for each in runner.job_store.all() if each.state in OPEN]
    ahead = waiting.index(job.id) if job.state == "queued" and job.id in waiting else 0
    return {
        "id": job.id,
        "title": job.title,
        "state": job.state,
        "stopping": job.stopping is not None,
        "words": status_text(job, progress, ahead),
        "progress": progress,
        "created": job.created,
        "started": job.started,
        "ended": job.ended,
        "model": job.order.model,
        "explainers": len(job.order.explainers),
        "audits": len(job.order.audits),
        "limit": job.order.limit,
        "seed": job.order.seed,
        "command": shlex.join(["assay", *runner.arguments(job)]),
        "report": f"/jobs/{job.id}/report" if job.state == "finished" else None,
        "broke": job.state in ("failed", "cancelled", "timed out"),
    }


def status_text(job: Job, progress: dict[str, Any] | None, ahead: int) -> str:
    """The status of a job in words."""
    if job.state == "queued":
        return f"waits for {ahead} other job{'' if ahead == 1 else 's'}" if ahead else "begins in a moment"
    if job.state != "running":
        took = f"took {duration(job.ended - job.started)}" if job.ended and job.started else ""
        return job.sentence or took
    if job.stopping is not None:
        return "is being stopped"
    if progress is None:
        return "starting"
    said = str(progress["task"])
    if progress["total"] and not EPOCH.search(said):
        said += f", {int(progress['done']):,} of {int(progress['total']):,}"
    if progress["left"]:
        said += f", about {duration(max(1.0, progress['left']))} left"
    return said


def overall_progress(progress: dict[str, Any] | None) -> dict[str, Any] | None:
    """Progress over all epochs, so that the bar does not restart with each; the total time is unknown."""
    epoch = EPOCH.fullmatch(progress["task"]) if progress else None
    if progress is None or epoch is None:
        return progress
    number, most = map(int, epoch.groups())
    done = number - 1 + progress["done"] / (progress["total"] or 1)
    return {"task": f"training the model, epoch {number}/{most}", "done": done, "total": float(most), "left": None}


def _first(text: str | None) -> str:
    """The first paragraph on one line."""
    return " ".join((text or "").strip().partition("\n\n")[0].split())

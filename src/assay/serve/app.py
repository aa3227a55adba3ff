"""Builds the FastAPI app: routes, static files, error handlers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from assay.errors import AssayError
from assay.serve import explaining, jobs, runs, uploads
from assay.serve.job_runner import JobRunner
from assay.serve.job_store import JobStore
from assay.serve.live_model import LiveModel
from assay.serve.model_queue import Busy, ModelQueue
from assay.serve.pages import HERE, LOOK, failed, stylesheet
from assay.serve.safety import Guard
from assay.serve.settings import Settings
from assay.serve.signals import stopping


def create(settings: Settings, live_models: Mapping[str, LiveModel]) -> FastAPI:
    """The app over run folders and live models."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.uploads.tidy()
        app.state.job_runner.start()
        with stopping(app.state.job_runner.leave):
            yield
        app.state.job_runner.close()
        app.state.model_queue.close()

    app = FastAPI(title="assay", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.state.settings = settings
    app.state.live_models = dict(live_models)
    app.state.model_queue = ModelQueue(settings.limits.waiting)
    app.state.uploads = uploads.Uploads(settings.home, settings.limits)
    reading = {name: live_model.about.get("options", ()) for name, live_model in live_models.items()}
    app.state.job_runner = JobRunner(JobStore(settings.home), settings.limits, reading)
    app.include_router(explaining.router)
    app.include_router(runs.router)
    app.include_router(jobs.router)
    app.include_router(uploads.router)
    app.add_api_route("/static/report.css", stylesheet, methods=["GET"])
    app.mount("/static/report", StaticFiles(directory=LOOK / "static"))
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    app.add_exception_handler(AssayError, _refused)
    app.add_exception_handler(Busy, _busy)
    app.add_exception_handler(HTTPException, _missing)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(Exception, _broken)
    app.add_middleware(Guard, settings=settings)
    return app


def error_response(request: Request, sentence: str, status: int, headers: dict[str, str] | None = None) -> Response:
    """An error in one sentence: JSON for paths below /api/, else a page."""
    if request.url.path.startswith("/api/"):
        readable = sentence.encode("utf-8", "replace").decode("utf-8")  # a request may hold half a character
        return JSONResponse({"detail": readable}, status, headers)
    answer: HTMLResponse = failed(sentence, status)
    answer.headers.update(headers or {})
    return answer


def _refused(request: Request, fault: Exception) -> Response:
    return error_response(request, str(fault), 422)


def _busy(request: Request, fault: Exception) -> Response:
    return error_response(
        request, "Too many requests wait for the model; try again in a moment.", 503, {"retry-after": "2"}
    )


def _missing(request: Request, fault: Exception) -> Response:
    assert isinstance(fault, HTTPException)
    sentence = "There is nothing at this address." if fault.status_code == 404 else str(fault.detail)
    return error_response(request, sentence, fault.status_code)


def _malformed(request: Request, fault: Exception) -> Response:
    assert isinstance(fault, RequestValidationError)
    first = fault.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
    return error_response(request, f"The request is not well formed ({where or 'body'}: {first['msg']}).", 422)


def _broken(request: Request, fault: Exception) -> Response:
    return error_response(request, "Something went wrong inside assay; the terminal of 'assay serve' says what.", 500)

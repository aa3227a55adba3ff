"""The FastAPI app, its routes and error handlers; and the server that opens models and answers until it is stopped."""

from __future__ import annotations

import secrets
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from assay.errors import AssayError
from assay.models.store import Opened
from assay.progress import console as aside
from assay.run.api import opened_model
from assay.run.workbench import Workbench
from assay.serve import jobs, runs, uploads
from assay.serve import live as explaining
from assay.serve.job_runner import JobRunner
from assay.serve.job_store import JobStore
from assay.serve.live import Busy, LiveModel, ModelQueue
from assay.serve.pages import HERE, LOOK, failed, stylesheet
from assay.serve.safety import Guard, Settings, is_loopback


@contextmanager
def stopping(call: Callable[[], None]) -> Iterator[None]:
    """Context manager: SIGINT and SIGTERM also make this call; works in the main thread only."""
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def heard(number: int, frame: FrameType | None) -> None:
        call()
        handler = handlers[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    changed = [each for each, handler in handlers.items() if callable(handler)]
    for each in changed:
        signal.signal(each, heard)
    try:
        yield
    finally:
        for each in changed:
            signal.signal(each, handlers[each])


# Builds the FastAPI app: routes, static files, error handlers.


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


# Opens the models that are explained live, and answers until it is stopped.


def serve(
    *folders: str | Path,
    model: Mapping[str, str | Path | Opened] | Sequence[str | Path] = (),
    host: str = "127.0.0.1",
    port: int = 8765,
    options: Sequence[str] = (),
) -> None:
    """Explains texts live, and shows and starts runs, in a browser, until it is stopped.

    The folders hold runs; without any it is "runs". Each `model` is a folder or "hf:NAME", or stands by its name in a
    dict. At another address than this machine's own a token is needed, which is printed. The `options` are those of the
    command line by which the models were opened, for the commands that the pages show.
    """
    places = tuple(map(Path, folders))
    for folder in places:
        if not folder.is_dir():
            raise AssayError(f"There is no folder {folder}; name one that holds runs.")
    named = model if isinstance(model, Mapping) else {str(each): each for each in model}
    benches = {name: Workbench(opened_model(each), name, options) for name, each in named.items()}
    bound = _bound(host, port)
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    taken = bound.getsockname()[1]
    settings = Settings(places or (Path("runs"),), host, taken, token)
    shown = f"[{host}]" if ":" in host else host
    aside.print(f"assay is at http://{shown}:{taken}/{f'?token={token}' if token else ''}", soft_wrap=True)
    config = uvicorn.Config(create(settings, benches), log_level="warning", timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[bound])


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; a port that is taken is said in one sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except (OSError, OverflowError) as fault:
        made.close()
        raise AssayError(f"Cannot listen at {host}:{port}; try another --port, or 0 for a free one.") from fault
    return made

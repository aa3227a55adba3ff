"""Live models: their protocol, the queue of calls to them, and the routes of the Explain page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Protocol, TypeVar, runtime_checkable

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from assay.errors import AssayError, unknown
from assay.grading.grade import TRUST
from assay.intervene.edits import Act
from assay.serve.pages import page
from assay.serve.safety import SizeLimitedRoute

# Protocol of a model that the app queries; the command line supplies implementations.


@runtime_checkable
class LiveModel(Protocol):
    """A loaded model that explains texts. Results are JSON values; bad input raises AssayError."""

    @property
    def about(self) -> dict[str, Any]:
        """Metadata: classes, inputs, what it attends to, available explainers and trees."""

    def explain(
        self, text: str, query: str | None, explainers: Sequence[str], target: str | None, tree: str | None = None
    ) -> dict[str, Any]:
        """The decision and the scores of each word; with `tree`, also that explanation tree."""

    def attend(self, text: str, query: str | None, act: Act) -> dict[str, Any]:
        """The decision under edited attention, beside the unedited one."""


# Serialises calls to a model; raises Busy (503) when full.


Answer = TypeVar("Answer")


class Busy(Exception):
    """The queue of a model is full."""


class ModelQueue:
    """One worker thread for all calls to models; more threads would only compete for the same cores."""

    def __init__(self, waiting: int) -> None:
        self._room = waiting
        self._taken = 0
        self._worker = ThreadPoolExecutor(1, "model")

    async def run(self, call: Callable[[], Answer]) -> Answer:
        """Waits for earlier calls, runs this one, and returns its result."""
        if self._taken >= self._room:
            raise Busy
        self._taken += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, call)
        finally:
            self._taken -= 1

    def close(self) -> None:
        self._worker.shutdown(cancel_futures=True)


# Routes of the Explain page: the page itself, and the JSON API for explanations and edited attention.


EXPLAINERS = 40
router = APIRouter(route_class=SizeLimitedRoute)


class TextRequest(BaseModel):
    """Request body: a text, optionally with a question, for one of the models."""

    model_config = ConfigDict(extra="forbid")

    model: str
    text: str
    query: str | None = None


class ExplainRequest(TextRequest):
    explainers: Annotated[list[str], Field(max_length=EXPLAINERS)]
    target: str | None = None
    tree: str | None = None


class ActFields(BaseModel):
    """The fields of an Act as JSON."""

    model_config = ConfigDict(extra="forbid")

    kind: str = "observed"
    weights: dict[int, float] = {}
    items: list[int] = []
    target: str | None = None
    seed: int = 0
    epsilon: float = 0.01
    layer: int | None = None
    head: int | None = None
    place: int | None = None

    def act(self) -> Act:
        return Act(**(self.model_dump() | {"items": tuple(self.items)}))


class AttendRequest(TextRequest):
    act: ActFields = ActFields()


@router.get("/")
def explain_page(request: Request) -> HTMLResponse:
    """The page; its state is in the address."""
    limit = request.app.state.settings.limits.text
    return page("explain.html.jinja", "/", live_models=list(request.app.state.live_models), limit=limit, trust=TRUST)


@router.get("/api/models")
def models(request: Request) -> JSONResponse:
    """Metadata of each live model, with its name."""
    live_models: dict[str, LiveModel] = request.app.state.live_models
    return JSONResponse({"models": [live_model.about | {"name": name} for name, live_model in live_models.items()]})


@router.post("/api/explain")
async def explain(request: Request, body: ExplainRequest) -> JSONResponse:
    """The decision on a text and the scores of its words."""
    live_model = _live_model(request, body)
    if live_model is None:
        return _unknown_model()
    chosen = list(dict.fromkeys(body.explainers))
    _check_known("explainer", chosen, [each["name"] for each in live_model.about["explainers"]])
    tree = body.tree or None
    _check_known("tree", [] if tree is None else [tree], live_model.about["trees"])
    found = await request.app.state.model_queue.run(
        lambda: live_model.explain(body.text, body.query or None, chosen, body.target or None, tree)
    )
    return JSONResponse(found)


@router.post("/api/attend")
async def attend(request: Request, body: AttendRequest) -> JSONResponse:
    """The decision on a text under edited attention."""
    live_model = _live_model(request, body)
    if live_model is None:
        return _unknown_model()
    act = body.act.act()
    return JSONResponse(
        await request.app.state.model_queue.run(lambda: live_model.attend(body.text, body.query or None, act))
    )


def _live_model(request: Request, body: TextRequest) -> LiveModel | None:
    """The model of that name, or None; raises where the text is empty or too long."""
    most = request.app.state.settings.limits.text
    for kind, given in (("text", body.text), ("question", body.query or "")):
        if len(given) > most:
            raise AssayError(f"The {kind} has {len(given):,} characters, and this app takes at most {most:,}.")
    if not body.text.strip():
        raise AssayError("The text is empty; type some words.")
    found: LiveModel | None = request.app.state.live_models.get(body.model)
    return found


def _unknown_model() -> JSONResponse:
    return JSONResponse({"detail": "No model of that name is open here; reload the page to see which are."}, 404)


def _check_known(kind: str, chosen: list[str], known: list[str]) -> None:
    for name in chosen:
        if name not in known:
            raise unknown(kind, name[:60], known)

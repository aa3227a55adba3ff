"""Routes of the Explain page: the page itself, and the JSON API for explanations and edited attention."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from assay.errors import AssayError, unknown
from assay.grading.grade import TRUST
from assay.intervene.edits import Act
from assay.serve.live_model import LiveModel
from assay.serve.pages import page
from assay.serve.size_limit import SizeLimitedRoute

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

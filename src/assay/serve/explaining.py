"""The page that explains one text and edits its attention, and what its script asks for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from assay.errors import AssayError, unknown
from assay.intervene.acts import Act
from assay.report.likely import TRUST
from assay.serve.bench import Bench
from assay.serve.bounded import Bounded
from assay.serve.pages import page

EXPLAINERS = 40
router = APIRouter(route_class=Bounded)


class Asked(BaseModel):
    """A text, and the question that goes with it, for one of the models."""

    model_config = ConfigDict(extra="forbid")

    model: str
    text: str
    query: str | None = None


class AskedExplanation(Asked):
    explainers: Annotated[list[str], Field(max_length=EXPLAINERS)]
    target: str | None = None
    tree: str | None = None


class AskedAct(BaseModel):
    """The fields of an Act, as JSON has them."""

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


class AskedAttention(Asked):
    act: AskedAct = AskedAct()


@router.get("/")
def explain_page(request: Request) -> HTMLResponse:
    """The page; what it shows is in its address."""
    limit = request.app.state.settings.limits.text
    return page("explain.html.jinja", "/", benches=list(request.app.state.benches), limit=limit, trust=TRUST)


@router.get("/api/models")
def models(request: Request) -> JSONResponse:
    """What each model is, under the name by which it is asked."""
    benches: dict[str, Bench] = request.app.state.benches
    return JSONResponse({"models": [bench.about | {"name": name} for name, bench in benches.items()]})


@router.post("/api/explain")
async def explain(request: Request, asked: AskedExplanation) -> JSONResponse:
    """The decision on a text and the scores of its words."""
    bench = _bench(request, asked)
    if bench is None:
        return _nobody()
    chosen = list(dict.fromkeys(asked.explainers))
    _check_known("explainer", chosen, [each["name"] for each in bench.about["explainers"]])
    tree = asked.tree or None
    _check_known("tree", [] if tree is None else [tree], bench.about["trees"])
    found = await request.app.state.desk.ask(
        lambda: bench.explain(asked.text, asked.query or None, chosen, asked.target or None, tree)
    )
    return JSONResponse(found)


@router.post("/api/attend")
async def attend(request: Request, asked: AskedAttention) -> JSONResponse:
    """The decision on a text under other attention."""
    bench = _bench(request, asked)
    if bench is None:
        return _nobody()
    act = asked.act.act()
    return JSONResponse(await request.app.state.desk.ask(lambda: bench.attend(asked.text, asked.query or None, act)))


def _bench(request: Request, asked: Asked) -> Bench | None:
    """The model that is asked, if there is one of that name and the text is one that it may be asked."""
    most = request.app.state.settings.limits.text
    for kind, given in (("text", asked.text), ("question", asked.query or "")):
        if len(given) > most:
            raise AssayError(f"The {kind} has {len(given):,} characters, and this app takes at most {most:,}.")
    if not asked.text.strip():
        raise AssayError("The text is empty; type some words.")
    found: Bench | None = request.app.state.benches.get(asked.model)
    return found


def _nobody() -> JSONResponse:
    return JSONResponse({"detail": "No model of that name is open here; reload the page to see which are."}, 404)


def _check_known(kind: str, chosen: list[str], known: list[str]) -> None:
    for name in chosen:
        if name not in known:
            raise unknown(kind, name[:60], known)

"""Settings and limits of the app, and the middleware that every request passes first."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

# Settings of the app: folders, address, token and limits.


@dataclass(frozen=True)
class Limits:
    """Limits; whatever exceeds them is refused in one sentence."""

    text: int = 20_000  # characters of a text that is typed in
    waiting: int = 100  # requests that wait for the model
    upload: int = 20 * 2**20  # bytes of a file
    rows: int = 50_000  # texts in a file
    seconds: int = 3600  # that a job may run
    jobs: int = 50  # that wait


@dataclass(frozen=True)
class Settings:
    """Run folders, the first of which also takes new jobs and uploads; host, port and token."""

    folders: tuple[Path, ...]
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None  # asked for when other machines can reach the app
    limits: Limits = Limits()

    @property
    def home(self) -> Path:
        return self.folders[0]

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host name or address is a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# Route class that limits the size of requests.


LARGEST = 2**20  # bytes of a request: a text in any script, and a weight for each of its words

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class SizeLimitedRoute(APIRoute):
    """Rejects POST requests without Content-Length, or with more than LARGEST bytes (413)."""

    def get_route_handler(self) -> Handler:
        handler = super().get_route_handler()

        async def bounded(request: Request) -> Response:
            length = request.headers.get("content-length", "")
            if request.method == "POST" and not (length.isdecimal() and int(length) <= LARGEST):
                return JSONResponse({"detail": "The request is too large; give a shorter text."}, 413)
            return await handler(request)

        return bounded


# Middleware: token, Host/Origin checks, Content-Security-Policy; applied to every request first.


Message = dict[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Scope = dict[str, object]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "assay"
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """ASGI middleware: refuses foreign hosts and origins and, where others can connect, requests without the token."""

    def __init__(self, app: App, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}  # type: ignore[attr-defined]
        refusal = self._refusal(str(scope["method"]), given)
        if refusal is not None:
            await _answer(send, 403, refusal)
        elif self.settings.token is not None and not _same(_cookie(given), self.settings.token):
            await self._ask_token(scope, send)
        else:
            await self.app(scope, receive, _with_headers(send))

    def _refusal(self, method: str, given: dict[str, str]) -> str | None:
        host = given.get("host", "")
        if self.settings.loopback and not is_loopback(urlsplit(f"//{host}").hostname or ""):
            return "This app answers under 127.0.0.1 and localhost only."
        navigation = method == "GET" and given.get("sec-fetch-mode") == "navigate"
        if given.get("sec-fetch-site", "none") not in ("same-origin", "none") and not navigation:
            return "Requests from other sites are refused."
        origin = given.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return "Requests from other sites are refused."
        return None

    async def _ask_token(self, scope: Scope, send: Send) -> None:
        """Accepts the token in the address, and stores it in a cookie."""
        raw: bytes = scope["query_string"]  # type: ignore[assignment]
        query = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
        token = self.settings.token or ""
        if not _same(dict(query).get("token", ""), token):
            await _answer(send, 401, "Open the address with the token that 'assay serve' printed.")
            return
        rest = urlencode([pair for pair in query if pair[0] != "token"])
        place = str(scope["path"]) + (f"?{rest}" if rest else "")
        cookie = f"{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/"
        await _answer(send, 303, "", [("location", "/" + place.lstrip("/")), ("set-cookie", cookie)])


def _cookie(given: dict[str, str]) -> str:
    try:
        held = SimpleCookie(given.get("cookie", "")).get(COOKIE)
    except Exception:
        return ""
    return held.value if held is not None else ""


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _with_headers(send: Send) -> Send:
    """Adds the security headers that a response does not set itself."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: list[tuple[bytes, bytes]] = list(message.get("headers", []))  # type: ignore[call-overload]
            there = {name.lower() for name, _ in headers}
            headers += [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in there]
            message["headers"] = headers
        await send(message)

    return sending


async def _answer(send: Send, status: int, sentence: str, headers: list[tuple[str, str]] | None = None) -> None:
    sent = [("content-type", "text/plain; charset=utf-8"), *HEADERS.items(), *(headers or [])]
    raw = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in sent]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": sentence.encode("utf-8")})

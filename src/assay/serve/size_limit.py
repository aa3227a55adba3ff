"""Route class that limits the size of requests."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

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

"""A running app, for tests that ask it over a socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from assay.serve.live import LiveModel
from assay.serve.safety import Settings
from assay.serve.server import create


@contextmanager
def served(live_models: Mapping[str, LiveModel], *folders: Path, **options: object) -> Iterator[str]:
    """The address of an app over these folders, until the block ends."""
    settings = Settings(folders=folders, **options)  # type: ignore[arg-type]
    server = uvicorn.Server(
        uvicorn.Config(
            create(settings, live_models),
            host="127.0.0.1",
            port=0,
            log_level="warning",
            lifespan="on",
            timeout_graceful_shutdown=1,
        )
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    (socket,) = server.servers[0].sockets
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()

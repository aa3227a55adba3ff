"""Opens the models that are explained live, and answers until it is stopped."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import uvicorn

from assay.errors import AssayError
from assay.models.store import Opened
from assay.progress import console as aside
from assay.run.verbs import opened_model
from assay.run.workbench import Workbench
from assay.serve.app import create
from assay.serve.settings import Settings, is_loopback


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

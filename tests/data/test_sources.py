from __future__ import annotations

import hashlib
import io
import os
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from assay.data import fetch as indexes
from assay.data import fetch as sources
from assay.data.fetch import SOURCES, Member, Source, cached, local_copy, member, needed_copy
from assay.errors import AssayError

SENTENCES = "1\tThe soup was cold.\n2\tThe bread was warm, naïvely so.\n".encode()
NUMBERS = bytes(range(256)) * 5000  # longer than one chunk


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def tar_gz(name: str, data: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def pinned(file: str, archive: bytes, members: dict[str, bytes]) -> Source:
    listed = tuple(Member(path, len(data), sha256(data)) for path, data in members.items())
    return Source("Soup_Kitchen", "1.0", file, len(archive), sha256(archive), "MIT", listed)


@pytest.fixture
def archive() -> bytes:
    """A zip with a plain member, and with another one inside a tar.gz."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as written:
        written.writestr("kitchen/numbers.bin", NUMBERS)
        written.writestr("kitchen/inner.tar.gz", tar_gz("deep/sentences.txt", SENTENCES))
        written.writestr("setup.py", "raise SystemExit('a downloaded package must never run')")
    return buffer.getvalue()


@pytest.fixture
def source(archive: bytes) -> Source:
    members = {"kitchen/inner.tar.gz!deep/sentences.txt": SENTENCES, "kitchen/numbers.bin": NUMBERS}
    return pinned("Soup_Kitchen-1.0.zip", archive, members)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def index(tmp_path: Path, archive: bytes) -> Path:
    """A package index in a folder: one page a package, the files beside."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "Soup_Kitchen-1.0.zip").write_bytes(archive)
    page = tmp_path / "simple" / "soup-kitchen" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text('<html><body><a href="../../files/Soup_Kitchen-1.0.zip">Soup_Kitchen-1.0.zip</a></body></html>')
    return tmp_path / "simple"


def configure(monkeypatch: pytest.MonkeyPatch, **options: str) -> None:
    settings = {name.replace("_", "-"): value for name, value in options.items()}
    monkeypatch.setattr(indexes, "pip_options", lambda: settings)


def files_under(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def served(index: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The same index over HTTP, on this machine."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(index.parent))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://user:secret@127.0.0.1:{server.server_port}/simple"
        server.shutdown()
        thread.join()


def test_pip_settings_lead_to_a_member_inside_an_archive_inside_an_archive(
    source: Source, index: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index.as_uri())
    assert member(source, "sentences.txt").read_bytes() == SENTENCES
    assert member(source, "numbers.bin").read_bytes() == NUMBERS
    assert sorted(path.name for path in files_under(cache)) == ["numbers.bin", "sentences.txt"]


def test_an_index_over_http_serves_the_same_member(
    source: Source, served: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, index_url=served)
    assert member(source, "numbers.bin").read_bytes() == NUMBERS


def test_a_folder_of_archives_comes_before_any_index(
    source: Source, index: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, find_links=str(index.parent / "files"), index_url="http://127.0.0.1:9/simple")
    assert member(source, "sentences.txt").read_bytes() == SENTENCES


def test_no_index_means_that_no_index_is_asked() -> None:
    assert indexes.package_sources({"no-index": "true", "find-links": "/a /b"}) == ["/a", "/b"]
    settings = {"index-url": "https://one/simple", "extra-index-url": "file:///two\nhttps://three/simple"}
    assert indexes.package_sources(settings) == ["file:///two", "https://one/simple", "https://three/simple"]


def test_the_environment_overrides_the_settings_in_pips_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text(
        "[global]\nindex-url = https://file/simple\nproxy = http://global\n[install]\nproxy = http://own\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_PROXY", raising=False)
    options = indexes.pip_options()
    assert (options["index-url"], options["proxy"]) == ("https://file/simple", "http://own")
    monkeypatch.setenv("PIP_INDEX_URL", "https://environment/simple")
    assert indexes.pip_options()["index-url"] == "https://environment/simple"


def test_a_plain_tar_archive_is_read_too(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tar_gz("Soup_Kitchen-1.0/sentences.txt", SENTENCES)
    (tmp_path / "Soup_Kitchen-1.0.tar.gz").write_bytes(archive)
    configure(monkeypatch, find_links=str(tmp_path), no_index="1")
    source = pinned("Soup_Kitchen-1.0.tar.gz", archive, {"Soup_Kitchen-1.0/sentences.txt": SENTENCES})
    assert member(source, "sentences.txt").read_bytes() == SENTENCES


def test_what_is_cached_is_not_fetched_again_unless_it_is_damaged(
    source: Source, index: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, index_url=index.as_uri())
    assert not cached(source)
    path = member(source, "sentences.txt")
    assert cached(source)
    configure(monkeypatch, no_index="1")
    assert member(source, "sentences.txt") == path
    path.write_bytes(SENTENCES.replace(b"soup", b"tofu"))
    with pytest.raises(AssayError, match="No package index offers"):
        member(source, "sentences.txt")
    configure(monkeypatch, index_url=index.as_uri())
    assert member(source, "sentences.txt").read_bytes() == SENTENCES


@pytest.mark.parametrize("wrong", ["archive", "member"])
def test_a_wrong_hash_is_refused_and_nothing_is_kept(
    wrong: str, source: Source, index: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, index_url=index.as_uri())
    broken = replace(source, sha256="0" * 64)
    if wrong == "member":
        broken = replace(source, members=(replace(source.members[0], sha256="0" * 64),))
    with pytest.raises(AssayError, match=r"not 000000000000… .*nothing was kept: .*ASSAY_DATA"):
        member(broken, "sentences.txt")
    assert files_under(cache) == []


def test_an_interrupted_download_leaves_nothing_and_can_be_repeated(
    source: Source, archive: bytes, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(package: str, file: str) -> Iterator[bytes]:
        yield archive[: len(archive) // 2]
        raise KeyboardInterrupt

    monkeypatch.setattr(sources, "archive_chunks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        member(source, "numbers.bin")
    assert list((cache / "Soup_Kitchen-1.0").iterdir()) == []
    monkeypatch.setattr(sources, "archive_chunks", lambda package, file: iter([archive]))
    assert member(source, "numbers.bin").read_bytes() == NUMBERS


def test_an_index_that_cannot_be_reached_is_told_without_its_password(
    source: Source, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise requests.ConnectionError("no route")

    monkeypatch.setattr(requests.Session, "get", unreachable)
    configure(monkeypatch, index_url="https://user:secret@packages.example/simple")
    with pytest.raises(AssayError, match=r"from packages\.example; check the network .* ASSAY_DATA") as error:
        member(source, "numbers.bin")
    assert "secret" not in str(error.value)
    assert files_under(cache) == []


def test_a_package_that_is_gone_is_told(
    source: Source, served: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, index_url=served)
    for gone in (replace(source, package="other"), replace(source, file="Soup_Kitchen-2.0.zip")):
        with pytest.raises(AssayError, match=rf"No package index offers {gone.file} any more; .*ASSAY_DATA"):
            member(gone, "numbers.bin")


def test_a_download_that_breaks_off_is_told(
    source: Source, served: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete: Callable[..., Iterator[bytes]] = requests.Response.iter_content

    def broken(self: requests.Response, size: int = 1, decode_unicode: bool = False) -> Iterator[bytes]:
        chunks = complete(self, size, decode_unicode)
        yield next(chunks)
        if self.url.endswith(".zip"):
            raise requests.exceptions.ChunkedEncodingError("closed")
        yield from chunks

    monkeypatch.setattr(requests.Response, "iter_content", broken)
    configure(monkeypatch, index_url=served)
    with pytest.raises(
        AssayError, match=r"Soup_Kitchen-1\.0\.zip broke off \(ChunkedEncodingError\); nothing was kept"
    ):
        member(source, "numbers.bin")
    assert files_under(cache) == []


def test_a_cache_folder_that_cannot_be_written_is_told(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "file"))
    with pytest.raises(
        AssayError, match=r"Could not write to the cache folder .*; set ASSAY_CACHE to a folder with 3 MB"
    ):
        member(source, "numbers.bin")


def test_local_copies_are_found_under_assay_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    assert local_copy("a/b.txt") is None
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    assert local_copy("a/b.txt") is None
    with pytest.raises(AssayError, match=r"'soups' has no public source here; set ASSAY_DATA to .* holds a/b\.txt"):
        needed_copy("a/b.txt", "soups")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text("here")
    assert local_copy("a/b.txt") == needed_copy("a/b.txt", "soups") == tmp_path / "a" / "b.txt"
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(AssayError, match="which is not a folder"):
        local_copy("a/b.txt")


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_every_pin_is_well_formed(source: Source) -> None:
    pins = [source.sha256, *(listed.sha256 for listed in source.members)]
    assert all(len(pin) == 64 and set(pin) <= set("0123456789abcdef") for pin in pins)
    assert source.version in source.file
    assert source.file.lower().replace("-", "_").startswith(source.package.lower().replace("-", "_"))
    names = [listed.name for listed in source.members]
    assert names and len(set(names)) == len(names)

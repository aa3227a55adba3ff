"""The verb that trains a model to select what it reads: from options to a folder, and to what is printed."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from assay.cli.choices import chosen_corpus
from assay.cli.options import DataOptions, SelectionOptions

NOT_OF_TRAINING = ("recipe", "rate", "units", "seed", "device", "limit")


def shown_rationales(
    data: DataOptions, options: SelectionOptions, model: str | None, out: Path | None, console: Console
) -> None:
    """Trains, measures, writes the page and the numbers, and prints the finding."""
    from assay.models.recipes import Recipe
    from assay.rationales.selection_page import brief
    from assay.report.console import shown
    from assay.run.rationalising import PAGE, chosen, rationalise, write

    others = {name: value for name, value in asdict(options).items() if name not in NOT_OF_TRAINING}
    usual = options.recipe, model, options.rate, options.units, options.seed
    wanted = chosen(*usual, options.device, **others)  # what is wrong in it is said before a corpus is read
    corpus = chosen_corpus(data, options.seed)
    encoder = wanted.base.architecture.encoder if isinstance(wanted.base, Recipe) else Path(wanted.base.base).name
    folder = out or Path("runs") / _title(corpus.name, encoder, options)
    made = rationalise(corpus, *usual, folder, options.device, options.limit, **others)
    answer = made.answer | {"command": shlex.join(["assay", *sys.argv[1:]])}
    write(answer, folder)
    for block in shown(brief(answer)):
        console.print(block, soft_wrap=isinstance(block, Text))
    console.print(f"Page: {folder / PAGE}", soft_wrap=True, highlight=False)


def _title(corpus: str, encoder: str, options: SelectionOptions) -> str:
    """A folder name that tells one run from another."""
    parts = [corpus, options.recipe, encoder, *_marks(options), str(options.seed)]
    return re.sub(r"[^\w.-]+", "-", "-".join(parts))


def _marks(options: SelectionOptions) -> list[str]:
    """What tells a selection from the usual one."""
    told = ("rate", "width", "reading", "size", "continuity", "concepts", "pairs", "price")
    units = [] if options.units == "token" else [options.units]
    given = ((name, getattr(options, name)) for name in told)
    return units + [f"{name}{value}" for name, value in given if value is not None]

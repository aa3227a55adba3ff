"""The verbs about training texts: from options to an answer, and from an answer to what is printed."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from assay.cli.options import InfluenceOptions
from assay.errors import AssayError

if TYPE_CHECKING:
    from assay.data.examples import Corpus
    from assay.models.store import Opened
    from assay.run.influencing import Traced


def checked(text: str | None, options: InfluenceOptions) -> None:
    """Refuses a question that is none, before a model is opened."""
    if (text is None) != options.mislabelled:
        raise AssayError(
            "Give a text to ask which training texts decided it, or 'assay mislabelled' to look for wrong labels."
        )
    if options.mislabelled and options.check is not None:
        raise AssayError("A check is about the decision on a text; leave --check out, or give a text.")


def traced(model: Opened, text: str | None, query: str | None, corpus: Corpus, options: InfluenceOptions) -> Traced:
    """What is found among the training texts."""
    from assay.run.influencing import influence, mislabelled

    if text is None:
        return mislabelled(model, corpus, options.method, 50 if options.top is None else options.top)
    return influence(
        model,
        text,
        corpus,
        query,
        options.method,
        options.target,
        options.class_name,
        5 if options.top is None else options.top,
        options.tokens,
        options.check,
        options.retrainings,
    )


def show(made: Traced, name: str, out: Path | None, json_output: bool, console: Console) -> None:
    """Writes the page and the numbers, and prints the finding."""
    from assay.files import write_text
    from assay.influence.page import brief, document
    from assay.report.console import shown
    from assay.report.save import save
    from assay.run.influencing import FILE, PAGE

    answer = made.answer | {"command": shlex.join(["assay", *sys.argv[1:]])}
    if json_output:
        print(json.dumps(answer, ensure_ascii=False))
        return
    folder = out or Path("runs") / re.sub(r"[^\w.-]+", "-", f"influence-{Path(name).parent.name or name}")
    write_text(folder / FILE, json.dumps(answer, ensure_ascii=False, allow_nan=False) + "\n")
    save(document(answer), folder / PAGE)
    for block in shown(brief(answer)):
        console.print(block, soft_wrap=isinstance(block, Text))
    console.print(f"Page: {folder / PAGE}", soft_wrap=True, highlight=False)

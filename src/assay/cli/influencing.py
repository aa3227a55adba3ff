"""The verb that looks for training texts: from options to an answer, and from an answer to what is printed."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from assay.cli.options import InfluenceOptions, TrainedOn
from assay.cli.parts import learnt_corpus
from assay.errors import AssayError

if TYPE_CHECKING:
    from assay.models.store import Opened
    from assay.run.background import Background


def shown_influence(
    model: Opened,
    name: str,
    text: str | None,
    query: str | None,
    data: TrainedOn,
    options: InfluenceOptions,
    seed: int | None,
    out: Path | None,
    console: Console,
) -> None:
    """Looks for training texts, writes the page and the numbers, and prints the finding."""
    from assay.files import write_text
    from assay.influence.page import brief, document
    from assay.report.console import shown
    from assay.report.save import save
    from assay.run.influencing import FILE, PAGE

    if (text is None) != options.mislabelled:
        raise AssayError(
            "Give a text to ask which training texts decided it, or --mislabelled to look for wrong labels."
        )
    if options.mislabelled and options.check is not None:
        raise AssayError("A check is about the decision on a text; leave --check out, or give a text.")
    answer = _answer(_background(model, data, seed), text, query, options)
    answer["command"] = shlex.join(["assay", *sys.argv[1:]])
    if options.json_output:
        print(json.dumps(answer, ensure_ascii=False))
        return
    folder = out or Path("runs") / re.sub(r"[^\w.-]+", "-", f"influence-{Path(name).parent.name or name}")
    write_text(folder / FILE, json.dumps(answer, ensure_ascii=False, allow_nan=False) + "\n")
    save(document(answer), folder / PAGE)
    for block in shown(brief(answer)):
        console.print(block, soft_wrap=isinstance(block, Text))
    console.print(f"Page: {folder / PAGE}", soft_wrap=True, highlight=False)


def _background(model: Opened, data: TrainedOn, seed: int | None) -> Background:
    """The model with the corpus that it learnt from: the one that is named, or the one that its card names."""
    from assay.run.background import Background

    return Background.of(model, learnt_corpus(model, data, seed))


def _answer(background: Background, text: str | None, query: str | None, options: InfluenceOptions) -> dict[str, Any]:
    from assay.run.checking import checked
    from assay.run.influencing import influential, suspects

    if text is None:
        answer = suspects(background, options.method, 50 if options.top is None else options.top)
    else:
        answer = influential(
            background,
            text,
            query,
            options.method,
            options.target,
            options.asked,
            5 if options.top is None else options.top,
            options.tokens,
        )
    if options.check is not None:
        answer["checks"] = checked(background, answer["method"]["name"], options.check, options.retrainings)
    return answer

"""The verb that probes heads: from options to a plan, and from a finished probe to what is printed."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from assay.cli.choices import HUB, chosen_corpus, kind_of, names
from assay.cli.options import DataOptions
from assay.errors import AssayError

if TYPE_CHECKING:
    from assay.run.probing import ProbePlan, Texts


def chosen_probe(model: str, sections: str, limit: int | None, corpus: str | None, device: str, seed: int) -> ProbePlan:
    """What is to be probed; a model that has no heads is refused."""
    from assay.run.probing import SECTIONS, ProbePlan

    if kind_of(model) not in ("encoder", "transformer"):
        raise AssayError(f"{model} is no transformer; heads are probed in minilm, a folder of Hugging Face or hf:NAME.")
    chosen = tuple(dict.fromkeys(names(sections, {"all": SECTIONS})))
    return ProbePlan(model.removeprefix(HUB), chosen, limit, corpus, device, seed)


def labelled(corpus: str | None, seed: int) -> Texts | None:
    """The dev and test texts of a corpus, with labels counted in the classes of a model; None without a corpus."""
    if corpus is None:
        return None
    from assay.run import probing

    return partial(probing.labelled, chosen_corpus(DataOptions(corpus=corpus), seed))


def show(plan: ProbePlan, texts: Texts | None, out: Path | None, command: str, console: Console) -> None:
    """Probes, writes the page, and prints the headline, the relations with their best heads, and what is left out."""
    from assay.probes.drawings import PAGE
    from assay.probes.probe_page import brief, document
    from assay.report.console import shown
    from assay.report.save import save
    from assay.run.probing import probed

    folder = out or Path("runs") / _title(plan)
    probe = probed(plan, folder, texts, command)
    save(document(probe), folder / PAGE)
    console.print()
    for block in shown(brief(probe)):
        console.print(block, soft_wrap=isinstance(block, Text))
    console.print(f"Page: {folder / PAGE}", soft_wrap=True)


def _title(plan: ProbePlan) -> str:
    """A folder name that tells one probe from another."""
    place = Path(plan.model)
    made = place.parent.name if place.name == "model" else place.name
    limited = "" if plan.limit is None else f"-{plan.limit}"
    return re.sub(r"[^\w.-]+", "-", f"heads-{made}-{plan.seed}{limited}")

"""The verb that probes heads: from options to a plan, and from a finished probe to what is printed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from assay.cli.choices import HUB, chosen_corpus, kind_of, names
from assay.cli.options import DataOptions, ProbeOptions
from assay.errors import AssayError

if TYPE_CHECKING:
    from assay.run.probing import ProbePlan, Texts


def chosen_probe(options: ProbeOptions, concepts: Mapping[str, Sequence[str]]) -> ProbePlan:
    """What is to be probed; a model that has no heads is refused where no concept is asked about."""
    from assay.run.probing import SECTIONS, ProbePlan

    model, kind = options.model, kind_of(options.model)
    if kind not in ("encoder", "transformer", *(["folder"] if concepts else [])):
        raise AssayError(f"{model} is no transformer; heads are probed in minilm, a folder of Hugging Face or hf:NAME.")
    if kind == "folder" and not Path(model).exists():
        raise AssayError(f"There is no model {model}; check the path.")
    chosen = tuple(dict.fromkeys(names(options.sections, {"all": SECTIONS})))
    return ProbePlan(
        model=model.removeprefix(HUB),
        sections=chosen,
        limit=options.limit,
        corpus=options.corpus,
        device=options.device,
        seed=options.seed,
        concepts=tuple(concepts),
        level=options.level,
    )


def chosen_concepts(files: Sequence[Path]) -> dict[str, list[str]]:
    """The texts that show each concept, by the name of its file."""
    from assay.data.tables import read_texts

    found: dict[str, list[str]] = {}
    for path in files:
        name = path.name.partition(".")[0]
        if name in found:
            raise AssayError(f"Two concepts are called {name!r}; give one of the files another name.")
        found[name] = read_texts(path)
    return found


def labelled(corpus: str | None, seed: int) -> Texts | None:
    """The dev and test texts of a corpus, with labels counted in the classes of a model; None without a corpus."""
    if corpus is None:
        return None
    from assay.run import probing

    return partial(probing.labelled, chosen_corpus(DataOptions(corpus=corpus), seed))


def show(options: ProbeOptions, out: Path | None, command: str, console: Console) -> None:
    """Probes, writes the page, and prints the headline, the relations with their best heads, and what is left out."""
    from assay.probes.drawings import PAGE
    from assay.probes.probe_page import brief, document
    from assay.report.console import shown
    from assay.report.save import save
    from assay.run.probing import probed

    concepts = chosen_concepts(options.concept or ())
    plan = chosen_probe(options, concepts)
    folder = out or Path("runs") / _title(plan)
    probe = probed(plan, folder, labelled(options.corpus, options.seed), command, concepts)
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
    about = "concepts" if plan.headless else "heads"
    return re.sub(r"[^\w.-]+", "-", f"{about}-{made}-{plan.seed}{limited}")

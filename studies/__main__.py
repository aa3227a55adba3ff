"""Writes the pages of studies anew from their committed results: README.md, tables and figures.

    ASSAY_DATA=folder python -m studies [meister verdict ...]

Nothing is made but what a folder of results lacks. Only `influence` needs data, sentences of SST that its page shows.
The results of `plausibility` are not kept: its command makes its page.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence

from assay.errors import unknown

PAGES: dict[str, tuple[tuple[str, ...], ...]] = {
    "adversaries": (("studies.planned", "adversaries", "--page"),),
    "explanations": (("studies.explanations", "--page"),),
    "influence": (("studies.influence",),),
    "jain_wallace": (("studies.jain_wallace",),),
    "jain_wallace_grid": (
        ("studies.planned", "jain_wallace_grid", "--page"),
        ("studies.jain_wallace_grid.beside",),
    ),
    "meister": (("studies.meister",),),
    "minimal_sets": (("studies.planned", "minimal_sets", "--page"),),
    "planted": (("studies.planted", "--page"),),
    "rationales": (("studies.rationales", "--page"),),
    "sequences": (("studies.sequences",),),
    "serrano_smith": (("studies.serrano_smith",),),
    "sst_embeddings": (("studies.planned", "sst_embeddings", "--page"),),
    "transformers": (("studies.transformers",),),
    "verdict": (("studies.verdict", "--page"),),
    "wiegreffe_pinter": (("studies.wiegreffe_pinter",),),
    "word_level": (("studies.word_level", "--page"),),
}
"""The commands that write each page, as modules with their options."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"these alone, of {', '.join(PAGES)}")
    names = parser.parse_args().names or list(PAGES)
    for name in names:
        if name not in PAGES:
            raise SystemExit(str(unknown("study with results", name, PAGES)))
    for name in names:
        for command in PAGES[name]:
            _run(command)


def _run(command: Sequence[str]) -> None:
    """Runs a module with its options in this process."""
    given = sys.argv
    try:
        sys.argv = list(command)
        runpy.run_module(command[0], run_name="__main__")
    finally:
        sys.argv = given


if __name__ == "__main__":
    main()

"""Makes the bank of known reasons, fits the rule of the verdict to it, and writes table, figures and page.

    ASSAY_DATA=folder python -m studies.verdict [--device cuda] [--jobs 2] [--only keyword,built] [--small] [--page]

A finished cell stays in the folder for runs and is only read, so that an interrupted run goes on. `--small` makes one
model of every family on a CPU and shows what they give, without a page. `--page` makes no cell: it writes page and
table anew, bit for bit, from results/.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from pathlib import Path

from assay import progress
from assay.errors import AssayError
from assay.records import read_table, write_table
from studies.verdict.bank import cells, few
from studies.verdict.cells import make
from studies.verdict.fitting import gathered
from studies.verdict.page import judgements, write
from studies.verdict.rule import held_out, judged
from studies.verdict.shipped import of_explainers, shipped
from studies.verdict.shipped import write as ship

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="cells, or how their names begin, as in keyword,built; no page")
    parser.add_argument("--runs", type=Path, default=Path("runs/verdict"))
    parser.add_argument("--small", action="store_true", help="one model of every family; no page")
    parser.add_argument("--page", action="store_true", help="page and table from results/, and nothing else")
    options = parser.parse_args()
    starts = tuple(part for part in options.only.split(",") if part)
    wanted = [cell for cell in (few() if options.small else cells()) if not starts or cell.name.startswith(starts)]
    if not options.page:
        make(wanted, options.runs, options.device, options.jobs)
        explainers, texts = gathered(options.runs, wanted)
        if options.small or starts:
            cases = of_explainers(explainers)
            progress.console.print(
                judgements({"economy": judged(*held_out(cases), cases)}), highlight=False, soft_wrap=True
            )
            return
        for name, table in (("explainers", explainers), ("texts", texts)):
            write_table(table, RESULTS / f"{name}.parquet")
    explainers, texts = (read_table(RESULTS / f"{name}.parquet") for name in ("explainers", "texts"))
    write(explainers, texts)
    ship(shipped(explainers, texts))


if __name__ == "__main__":
    try:
        main()
    except AssayError as fault:
        raise SystemExit(str(fault)) from None

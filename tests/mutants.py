"""Faults that tests must notice: each breaks one line of a copy of the package, and the tests named for it must fail.

python -m tests.mutants            # all of them
python -m tests.mutants ranks_off  # some
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FAST = "not slow and not gpu and not cluster and not data"


@dataclass(frozen=True)
class Mutant:
    """A line of a file of the package, what stands there instead, and the tests that must notice."""

    file: str
    line: str
    instead: str
    tests: tuple[str, ...]

    def applied(self, source: str) -> str:
        assert source.count(self.line) == 1, f"{self.file} has {source.count(self.line)} times: {self.line}"
        return source.replace(self.line, self.instead)


MUTANTS = {
    "input_x_gradient_sign": Mutant(
        "explainers/gradients.py",
        "    return (x * gradient).sum(-1)\n",
        "    return -(x * gradient).sum(-1)\n",
        ("tests/explainers/test_gradients.py",),
    ),
    "occlusion_sign": Mutant(
        "explainers/occlusion.py",
        "(whole[:, None] - without).scatter",
        "(without - whole[:, None]).scatter",
        ("tests/explainers/test_occlusion.py",),
    ),
    "gradients_of_padding": Mutant(
        "explainers/gradients.py",
        "gradient * batch.mask[..., None]",
        "gradient",
        ("tests/explainers/test_gradients.py",),
    ),
    "lstm_reads_padding": Mutant(
        "models/encoders.py",
        "order = mirrored(mask)",
        "order = mirrored(torch.ones_like(mask))",
        ("tests/models/test_encoders.py",),
    ),
    "edit_over_the_wrong_axis": Mutant(
        "intervene/edits.py",
        "even = mask.to(weights.dtype) / mask.sum(-1, keepdim=True)",
        "even = mask.to(weights.dtype) / mask.sum(0, keepdim=True)",
        ("tests/contracts/test_edits.py",),
    ),
    "permuting_padding": Mutant(
        "intervene/edits.py",
        "self._keys(weights).masked_fill(~real, 2.0)",
        "self._keys(weights)",
        ("tests/contracts/test_edits.py",),
    ),
    "ranks_off_by_one": Mutant(
        "metrics/erasure.py",
        "return np.asarray(order.argsort(-1))",
        "return np.asarray(order.argsort(-1) + 1)",
        ("tests/metrics/test_erasure.py",),
    ),
    "ranks_of_padding": Mutant(
        "metrics/erasure.py",
        "np.where(mask, -levelled(scores, mask), np.inf)",
        "(-levelled(scores, mask))",
        ("tests/metrics/test_erasure.py",),
    ),
    "erased_words_are_read": Mutant(
        "models/erasure.py",
        "mask=kept.gather(1, positions)",
        "mask=batch.mask[rows, positions]",
        ("tests/models/test_erasure.py",),
    ),
    "classes_swapped_in_an_audit": Mutant(
        "audits/word_erasure.py",
        "(np.arange(answers.shape[-1]) == self.predicted[:, None]) != others",
        "(np.arange(answers.shape[-1]) == self.predicted[:, None]) == others",
        ("tests/audits/test_erasure.py",),
    ),
    "influence_sign": Mutant(
        "influence/similarity.py",
        "Influence(dots(setting) * setting.shares",
        "Influence(-dots(setting) * setting.shares",
        ("tests/influence/test_similarity.py",),
    ),
    "least_likely_words_selected": Mutant(
        "rationales/units.py",
        "argsort(dim=-1, descending=True, stable=True)",
        "argsort(dim=-1, stable=True)",
        ("tests/rationales/test_decoding.py",),
    ),
    "grade_turned_round": Mutant(
        "report/sections.py",
        '"pass" if found.low > 0 else "fail" if found.high <= 0',
        '"fail" if found.low > 0 else "pass" if found.high <= 0',
        ("tests/report/test_cards.py",),
    ),
}


def killed_by(mutant: Mutant, folder: Path) -> str | None:
    """The first test that fails over a copy of the package in the folder with this fault in it, or None."""
    shutil.copytree(ROOT / "src", folder, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "assay" / mutant.file
    path.write_text(mutant.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-m", FAST]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *mutant.tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    failed = re.search(r"^FAILED (\S+)", ran.stdout, flags=re.M)
    if ran.returncode not in (0, 1) or (ran.returncode == 1) != (failed is not None):
        raise SystemExit(ran.stdout + ran.stderr)
    return failed[1] if failed else None


def main(names: list[str]) -> int:
    survived = 0
    for name in names or MUTANTS:
        with tempfile.TemporaryDirectory() as folder:
            test = killed_by(MUTANTS[name], Path(folder) / "src")
        survived += test is None
        print(f"{name}: {'survived' if test is None else test}", flush=True)
    return survived


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

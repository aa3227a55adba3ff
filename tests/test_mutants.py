"""The faults of tests.mutants can be made; that each is noticed is what `python -m tests.mutants` shows."""

from __future__ import annotations

import pytest

from tests.mutants import MUTANTS, ROOT


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_can_be_made_and_its_tests_are_there(name: str) -> None:
    mutant = MUTANTS[name]
    source = (ROOT / "src/assay" / mutant.file).read_text(encoding="utf-8")
    compile(mutant.applied(source), mutant.file, "exec")
    assert mutant.applied(source) != source
    assert all((ROOT / path.partition("::")[0]).exists() for path in mutant.tests)

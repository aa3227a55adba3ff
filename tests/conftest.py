"""Shapes are checked at run time, in tests only; randomness and threads are fixed."""

from collections import Counter
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jaxtyping

CALLS = 2
"""So many calls of each function have their shapes checked, in each test: every check costs more than most calls."""

_calls: Counter[Callable[..., Any]] = Counter()
_jaxtyped = jaxtyping.jaxtyped


def _first_calls_checked(*, typechecker: Any) -> Callable[[Any], Any]:
    """Like jaxtyping's own decorator, but only the first CALLS of a function in a test are checked.

    Functions within functions are not: they are made anew, and with them their checks, whenever the outer one runs.
    """

    def decorated(function: Any) -> Any:
        if isinstance(function, type):
            if is_dataclass(function) and "__init__" in vars(function):
                function.__init__ = decorated(function.__init__)  # type: ignore[misc]
            return function
        if "<locals>" in function.__qualname__:
            return function
        checked = None

        @wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            nonlocal checked
            __tracebackhide__ = True
            if _calls[function] >= CALLS or torch.compiler.is_compiling():
                return function(*args, **options)
            _calls[function] += 1
            checked = checked or _jaxtyped(function, typechecker=typechecker)
            return checked(*args, **options)

        return called

    return decorated


def _modules_with_arrays() -> list[str]:
    """The modules whose annotations name shapes; mypy sees to the types of all others, without a cost at each call."""
    spec = find_spec("assay")
    assert spec is not None and spec.origin is not None
    root = Path(spec.origin).parent
    shaped = ("jaxtyping", "from assay.metrics import")
    paths = [path for path in root.rglob("*.py") if any(name in path.read_text(encoding="utf-8") for name in shaped)]
    names = (".".join(path.relative_to(root.parent).with_suffix("").parts) for path in paths)
    return [name.removesuffix(".__init__") for name in names]


jaxtyping.jaxtyped = _first_calls_checked  # what the import hook decorates with
hook = jaxtyping.install_import_hook(_modules_with_arrays(), "beartype.beartype")

import os  # noqa: E402

import hypothesis  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("untimed")
torch.set_num_threads(1)  # the same rounding everywhere
os.environ["ASSAY_WORKERS"] = "1"  # starting a process takes longer than the trainings here


@pytest.fixture(autouse=True)
def _fixed_seed() -> None:
    torch.manual_seed(0)
    _calls.clear()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need what this machine has not are skipped, and say why; the longest stand first."""
    items.sort(key=lambda item: "test_readme" not in item.nodeid)  # else one worker is left alone with it at the end
    for item in items:
        if item.get_closest_marker("data") and "ASSAY_DATA" not in os.environ:
            item.add_marker(pytest.mark.skip(reason="ASSAY_DATA is not set"))
        if item.get_closest_marker("gpu") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="no GPU"))

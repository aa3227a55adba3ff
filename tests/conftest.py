"""Shapes are checked at run time, in tests only; randomness and threads are fixed."""

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args, get_origin

import jaxtyping
from beartype import beartype


def _modules_with_arrays() -> list[str]:
    """The modules whose annotations name shapes; mypy sees to the types of all others, without a cost at each call."""
    spec = find_spec("assay")
    assert spec is not None and spec.origin is not None
    root = Path(spec.origin).parent
    paths = [path for path in root.rglob("*.py") if "jaxtyping" in path.read_text(encoding="utf-8")]
    names = (".".join(path.relative_to(root.parent).with_suffix("").parts) for path in paths)
    return [name.removesuffix(".__init__") for name in names]


def _resolved(annotation: object, names: dict[str, Any]) -> Any:
    """What an annotation stands for; anything, where it is not known at run time."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, names)
    except Exception:
        return Any


@cache
def _holds_arrays(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, jaxtyping.AbstractArray):
        return True
    return get_origin(annotation) is not Callable and any(map(_holds_arrays, get_args(annotation)))


def _checked(function: Any) -> Any:
    """A function that checks its arrays, if it names any: parameters and result once each."""
    if isinstance(function, classmethod | staticmethod):
        return type(function)(_checked(function.__func__))
    if isinstance(function, property):
        return property(*(each and _checked(each) for each in (function.fget, function.fset, function.fdel)))
    if inspect.isclass(function):
        if is_dataclass(function) and "__init__" in vars(function):
            function.__init__ = _checked(function.__init__)
        return function
    hints = {name: _resolved(each, function.__globals__) for name, each in function.__annotations__.items()}
    if not any(map(_holds_arrays, hints.values())):
        return function
    if inspect.isgeneratorfunction(function):  # its parameters would be checked at its first step, as its caller's
        return shaped(function, typechecker=beartype)
    function.__annotations__ = hints
    return shaped(beartype(function), typechecker=None)


shaped = jaxtyping.jaxtyped
jaxtyping.jaxtyped = lambda typechecker: _checked  # it would check functions without arrays, and parameters twice
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need what this machine has not are skipped, and say why; the longest stand first."""
    items.sort(key=lambda item: "test_readme" not in item.nodeid)  # else one worker is left alone with it at the end
    for item in items:
        if item.get_closest_marker("data") and "ASSAY_DATA" not in os.environ:
            item.add_marker(pytest.mark.skip(reason="ASSAY_DATA is not set"))
        if item.get_closest_marker("gpu") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="no GPU"))

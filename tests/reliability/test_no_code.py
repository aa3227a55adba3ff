"""Nothing of a user's is executed: no source file of ours names what could do it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import assay

FILES = sorted(Path(assay.__file__).parent.rglob("*.py"))
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib", "yaml"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
CALLS = {("torch", "load"), ("numpy", "load"), ("os", "system"), ("os", "popen")}


def faults(tree: ast.AST) -> Iterator[str]:
    """What in a file could run code that comes from outside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.partition(".")[0] in MODULES)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
            yield str(node.module)
        if isinstance(node, ast.Call):
            yield from _call(node)


def _call(node: ast.Call) -> Iterator[str]:
    called = node.func
    if isinstance(called, ast.Name) and called.id in BUILTINS:
        yield called.id
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        name = {"np": "numpy"}.get(called.value.id, called.value.id), called.attr
        safe = any(each.arg == "allow_pickle" and _is(each.value, False) for each in node.keywords)
        if name in CALLS and not safe:
            yield ".".join(name)
    told = any(each.arg == "trust_remote_code" for each in node.keywords)
    if isinstance(called, ast.Attribute) and called.attr == "from_pretrained" and not told:
        yield "from_pretrained without trust_remote_code=False"
    for each in node.keywords:
        if each.arg in ("shell", "trust_remote_code", "allow_pickle") and not _is(each.value, False):
            yield f"{each.arg}={ast.unparse(each.value)}"


def _is(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def test_no_file_names_what_runs_what_it_is_given() -> None:
    assert len(FILES) > 200
    found = {str(path): list(faults(ast.parse(path.read_text(encoding="utf-8")))) for path in FILES}
    assert {path: each for path, each in found.items() if each} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from dill import loads",
        "eval(text)",
        "torch.load(path)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "subprocess.run(words, shell=True)",
        "AutoModel.from_pretrained(name)",
        "AutoModel.from_pretrained(name, trust_remote_code=given)",
    ],
)
def test_what_would_run_it_is_seen(code: str) -> None:
    assert list(faults(ast.parse(code)))


@pytest.mark.parametrize("code", ["np.load(path, allow_pickle=False)", "re.compile(text)", "subprocess.run(words)"])
def test_what_would_not_is_let_through(code: str) -> None:
    assert not list(faults(ast.parse(code)))

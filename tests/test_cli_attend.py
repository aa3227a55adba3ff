"""`assay attend` as a person meets it: what is printed, what each mistake says, and that commands reproduce."""

from __future__ import annotations

import io
import json
import shlex

import pytest
from rich.console import Console

from assay.cli.options import ActOptions, Reading
from assay.errors import AssayError
from assay.intervene.edits import Act
from assay.models import store
from assay.models.store import Trained
from assay.run.workbench import Workbench, attend
from tests import builders
from tests.calling import call
from tests.workbenches import CLASSES, TEXT, pooled, stack, tokeniser


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A stored model of pairs and one of single texts."""
    place = tmp_path_factory.mktemp("models with a space")
    for kind in ("lstm", "paired-lstm"):
        network = builders.kind(kind)
        store.save(Trained(network, tokeniser(), CLASSES[:2]), place / kind)
    return place


@pytest.fixture
def assay(monkeypatch, capsys):
    def run(*words: str) -> tuple[int, str, str]:
        return call(monkeypatch, capsys, *words)

    return run


def test_a_change_is_shown_as_a_table_where_there_are_no_colours(assay, folder) -> None:
    code, out, _ = assay("attend", TEXT, "--model", str(folder / "lstm"), "--act", "set", "--weights", "1=0.5")
    assert code == 0
    lines = out.splitlines()
    assert "→" in lines[0]
    assert "TVD" in lines[1]
    assert "JSD" in lines[1]
    assert "exact" in lines[1]
    assert lines[2].startswith("“w2” has 50% of the attention")
    assert lines[3].split() == ["before", "after"]
    number, word, _, after = lines[5].split()
    assert (number, word, after) == ("1", "w2", "0.5000")
    assert len(lines) == 4 + 11


ACTS = {
    "observed": Act(),
    "set": Act("set", {0: 0.25, 3: 1 / 3}),
    "uniform": Act("uniform"),
    "permute": Act("permute", seed=7),
    "erase": Act("erase", items=(0, 4)),
    "furthest": Act("furthest", epsilon=0.03),
    "flip": Act("flip"),
    "likeliest": Act("likeliest", target="good"),
}


@pytest.mark.parametrize("kind", ACTS)
def test_the_command_of_every_act_gives_the_same_again(assay, folder, kind) -> None:
    name = str(folder / "paired-lstm")
    bench = Workbench(store.load(folder / "paired-lstm"), name)
    found = bench.attend("--w1 'w2' \"w3\". w4", "-w9 $HOME", ACTS[kind])
    words = shlex.split(found["command"])
    code, out, err = assay(*words[1:2], "--json", *words[2:])
    assert code == 0, err
    again = json.loads(out)
    assert shlex.split(again.pop("command"))[3:] == words[2:]
    del found["command"]
    assert again == json.loads(json.dumps(found))


def test_the_command_of_an_explanation_gives_the_same_again(assay, folder) -> None:
    name = str(folder / "lstm")
    found = Workbench(store.load(folder / "lstm"), name).explain("-w1 w2", None, ["attention", "gradient"], "good")
    words = shlex.split(found.pop("command"))
    assert found.pop("drawn") == {}
    code, out, err = assay(*words[1:2], "--json", *words[2:])
    assert code == 0, err
    assert json.loads(out) == json.loads(json.dumps(found))


def test_so_does_that_of_a_tree(assay, folder) -> None:
    name = str(folder / "lstm")
    found = Workbench(store.load(folder / "lstm"), name).explain("w1 w2 w3", None, ["attention"], tree="acd")
    words = shlex.split(found.pop("command"))
    assert "w3" in found.pop("drawn")["acd"]
    code, out, err = assay(*words[1:2], "--json", *words[2:])
    assert code == 0, err
    assert json.loads(out) == json.loads(json.dumps(found)) and len(found["trees"]["acd"]["levels"]) == 3


MISTAKES = {
    "such as --weights": ["--act", "set"],
    "such as --items": ["--act", "erase"],
    "'half' is no number": ["--act", "set", "--weights", "1=half"],
    "'w2' is no number": ["--act", "set", "--weights", "w2=0.5"],
    "'' is no number": ["--act", "set", "--weights", "3"],
    "'x' is no number": ["--act", "erase", "--items", "1,x"],
    "names the item 1 twice": ["--act", "set", "--weights", "1=0.5,1=0.2"],
    "at most 1": ["--act", "set", "--weights", "1=0.5,2=0.7"],
    "--weights is for --act set": ["--act", "uniform", "--weights", "1=0.5"],
    "--seed is for --act permute": ["--seed", "3"],
    "did you mean 'erase'": ["--act", "erased"],
    "no word 99": ["--act", "set", "--weights", "99=0.5"],
    "leave layer, head": ["--act", "uniform", "--layer", "0"],
    "Unknown class": ["--act", "likeliest", "--target", "lovely"],
}


@pytest.mark.parametrize("sentence", MISTAKES)
def test_a_mistake_is_told_in_one_sentence(assay, folder, sentence) -> None:
    code, out, err = assay("attend", TEXT, "--model", str(folder / "lstm"), *MISTAKES[sentence])
    assert code == 2
    assert not out
    assert sentence in " ".join(err.split())
    assert "Traceback" not in err


def test_options_become_the_act_that_they_say() -> None:
    assert ActOptions("set", " 3=0.5, 7=.25,").chosen() == Act("set", {3: 0.5, 7: 0.25})
    assert ActOptions("erase", items="1, 2").chosen() == Act("erase", items=(1, 2))
    placed = ActOptions("uniform", layer=1, head=2, position=3)
    assert placed.chosen() == Act("uniform", layer=1, head=2, place=3)
    with pytest.raises(AssayError, match="is no number"):
        ActOptions("erase", items="1.5").chosen()


def test_how_a_model_is_read_is_part_of_a_command() -> None:
    assert Reading().words() == ()
    reading = Reading("cuda", subwords=True, dtype="bfloat16")
    assert reading.words() == ("--device", "cuda", "--subwords", "--dtype", "bfloat16")


def test_a_terminal_shows_the_text_twice_and_what_is_no_word() -> None:
    console = Console(width=90, file=io.StringIO(), force_terminal=True)
    console.print(attend(stack("bert").model, "A very [red]good film", Act("set", {3: 0.9})))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "\x1b[" in shown
    assert shown.count("very") == 2
    assert shown.count("[") >= 2 + shown.count("\x1b[")  # what looks like markup is text
    assert "before" in shown
    assert "after" in shown
    assert "on markers and question" in shown


def test_what_attention_can_reach_is_shown_for_every_class() -> None:
    out = str(attend(pooled("lstm", 3).model, TEXT, "likeliest"))
    assert "likeliest by attention alone: bad" in out
    assert "bracket" in out

"""Public names and help are in the words of the field."""

from __future__ import annotations

import inspect
import re

import pytest

import assay
from assay.cli.app import app

VERBS = (
    *("corpus", "train", "finetune", "load", "explain", "audit", "attend", "influence", "mislabelled"),
    *("rationalise", "probe", "study", "report", "serve"),
)
DICTS = ("EXPLAINERS", "AUDITS", "METHODS", "EDITS", "RECIPES", "ENCODERS", "CORPORA")
OURS = re.compile(
    r"\b(slopes?|places?|pieces?|dice|told|found|looked|met|asks?|asked|askers?|kept|parts?|bench|cases?|desk|quiz"
    r"|sight|plainly|sides?|portions?|meetings?|way back|(?<!hidden )states?)\b"
)
"""Words of our own; the field says gradient, position, subword, random state, cache, batch, hidden state.

One name stays, of the gradient at a hidden state: records and plans hold it.
"""


def ours(text: str) -> list[str]:
    return OURS.findall(text.replace("_", " ").replace("-", " ").lower())


def test_the_words_are_recognised():
    assert ours("The slope at each place") == ["slope", "place"]
    assert ours("Half the size of a state") == ["state"]
    assert ours("The hidden state of an LSTM; a statement") == []


@pytest.mark.parametrize("name", assay.__all__)
def test_a_public_name_is_one_of_the_field_s(name):
    assert ours(name) == []


@pytest.mark.parametrize("name", (*VERBS, "wrap"))
def test_a_verb_and_its_parameters_are_in_the_words_of_the_field(name):
    verb = getattr(assay, name)
    assert [word for parameter in inspect.signature(verb).parameters for word in ours(parameter)] == []
    assert ours((verb.__doc__ or "").partition("\n")[0]) == []


@pytest.mark.parametrize("name", DICTS)
def test_the_names_of_what_there_is_are_in_the_words_of_the_field(name):
    assert [key for key in getattr(assay, name) if ours(key)] == (["state_gradient"] if name == "EXPLAINERS" else [])


def commands():
    """Each verb of the command line with its app, and those of a study."""
    yield from ((name, app[name]) for name in app if not name.startswith("-"))
    yield from ((f"study {name}", app["study"][name]) for name in app["study"] if not name.startswith("-"))


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=lambda each: each if isinstance(each, str) else "")
def test_options_and_help_are_in_the_words_of_the_field(name, command):
    told = [name, command.help.partition("\n")[0]]
    if command.default_command is not None:
        for argument in command.assemble_argument_collection():
            told += [*argument.names, argument.parameter.help or ""]
    assert {sentence: ours(sentence) for sentence in told if ours(sentence)} == {}


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_there_in_python_and_on_the_command_line(name):
    assert callable(getattr(assay, name))
    assert name in app


SHARED = {"audit": {"explainers", "audits", "seed", "limit", "split", "epsilon", "tree", "scorer", "out"}}
SHARED |= {"explain": {"explainers", "target", "query", "tree", "scorer", "corpus", "model"}}
SHARED |= {"attend": {"act", "query", "weights", "items", "target", "seed", "epsilon", "layer", "head", "position"}}
SHARED |= {"influence": {"method", "query", "target", "top", "tokens", "check", "retrainings", "seed", "corpus"}}
SHARED |= {"mislabelled": {"method", "top", "seed", "corpus"}, "serve": {"host", "port", "model"}}
SHARED |= {"probe": {"model", "sections", "limit", "corpus", "device", "seed"}, "report": {"format", "out"}}
SHARED |= {"study": {"engine", "jobs", "device", "retries", "address", "cpus", "gpus", "shared", "out"}}
SHARED |= {
    "finetune": {"base"},
    "train": {"encoder", "alignment", "preset", "seed"},
    "rationalise": {"recipe", "units"},
}


@pytest.mark.parametrize("name", SHARED)
def test_an_option_has_one_name(name):
    in_python = set(inspect.signature(getattr(assay, name)).parameters)
    options = {each.removeprefix("--") for part in app[name].assemble_argument_collection() for each in part.names}
    assert SHARED[name] <= in_python
    assert SHARED[name] <= options


def test_no_verb_but_those_that_train_has_options_of_training():
    names = {each for part in app["audit"].assemble_argument_collection() for each in part.names}
    training = {each for part in app["train"].assemble_argument_collection() for each in part.names}
    assert {"--encoder", "--hidden", "--learning-rate", "--projection", "--head"} <= training - names
    for verb in ("explain", "attend", "influence", "probe", "serve"):
        own = {each for part in app[verb].assemble_argument_collection() for each in part.names}
        assert not own & {"--encoder", "--hidden", "--learning-rate", "--epochs", "--preset"}, verb

"""Loads stored or published transformers, ready to be explained."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from assay.errors import AssayError, library_errors, unknown
from assay.files import write_text
from assay.models import tensors
from assay.models.checkpoints import under
from assay.models.huggingface.attentive import Attentive
from assay.models.huggingface.body import Body
from assay.models.huggingface.compiling import compiled
from assay.models.huggingface.loading import (
    DTYPES,
    classifier_of,
    configuration,
    encoder_of,
    fitted,
    silent,
    tokenizer_of,
)
from assay.models.huggingface.pretrained import Pretrained, SubwordPretrained
from assay.models.huggingface.subwords import SubwordTokeniser
from assay.models.huggingface.traits import traits
from assay.models.parallel import parallel
from assay.models.store import Opened

CARD, HEAD = "assay.json", "attention.safetensors"


@dataclass(frozen=True)
class Opening:
    """The options of loading a transformer: one `device`, or several separated by commas, precision, tokenisation.

    Tokens are `words` or subwords; a text that is too long is left out, or cut where it is `truncated`; of independent
    labels one is audited; `classes` are other names for the model's, in their order.
    """

    device: str = "cpu"
    dtype: str = "float32"
    words: bool = True
    truncate: bool = False
    label: str | None = None
    classes: tuple[str, ...] | None = None
    compiled: bool = False

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(each.strip() for each in self.device.split(","))

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise unknown("precision", self.dtype, DTYPES)


def opened(name: str, options: Opening = Opening()) -> Opened:  # noqa: B008
    """The model in a folder, or of that name on the hub."""
    config = configuration(name)
    tokeniser = tokenizer_of(name, config).with_options(words=options.words, truncate=options.truncate)
    card = _card(Path(name))
    dtype = DTYPES[options.dtype]
    network: Body
    if card.get("head") == "attention":
        classes, _ = _classes(config, options, name)
        network = _attentive(Path(name), config, tokeniser.inner, dtype)
    else:
        inner = classifier_of(name, config, dtype).to(options.devices[0])
        network, classes = _classifier(inner, tokeniser.inner, options, name)
    if options.compiled:
        compiled(network.inner)
    history = card.get("history") or {"pretrained": name}
    network = network.to(options.devices[0]).eval()
    spread = network if len(options.devices) == 1 else parallel(network, options.devices)
    return Opened(spread, tokeniser, classes, history)


def wrapped(inner: Any, tokenizer: Any, options: Opening = Opening()) -> Opened:  # noqa: B008
    """Wraps a classifier of the library that is in memory; it is not changed, and stays on its device."""
    name = type(inner).__name__
    tokeniser = fitted(tokenizer, inner.config, name).with_options(words=options.words, truncate=options.truncate)
    network, classes = _classifier(inner, tokenizer, options, name)
    return Opened(network.eval(), tokeniser, classes, {"pretrained": name})


def _classifier(inner: Any, tokenizer: Any, options: Opening, name: str) -> tuple[Pretrained, tuple[str, ...]]:
    """The wrapped classifier, and the names of its classes."""
    classes, label = _classes(inner.config, options, name)
    kind = Pretrained if options.words else SubwordPretrained
    return kind(inner, traits(inner, tokenizer, name), label), classes


def encoder(name: str, options: Opening = Opening()) -> tuple[Attentive, SubwordTokeniser]:  # noqa: B008
    """A pretrained encoder without a classifier, for probes of its heads, and its tokeniser."""
    config = configuration(name)
    tokeniser = tokenizer_of(name, config).with_options(words=options.words, truncate=options.truncate)
    inner = encoder_of(name, config, DTYPES[options.dtype]).to(options.devices[0])
    return Attentive(inner, traits(inner, tokeniser.inner, name), 2).to(options.devices[0]).eval(), tokeniser


def save(model: Opened, folder: Path) -> None:
    """Writes the folder in the library's format, with assay's own card beside it, written last."""
    network = model.network
    assert isinstance(network, Body)
    assert isinstance(model.tokeniser, SubwordTokeniser)
    folder.mkdir(parents=True, exist_ok=True)
    with silent():
        network.inner.save_pretrained(folder)
        model.tokeniser.inner.save_pretrained(folder)
    pooled = isinstance(network, Attentive)
    if pooled:
        own = {name: part for name, part in network.state_dict().items() if not name.startswith("inner.")}
        tensors.save(own, folder / HEAD)
    card = {"head": "attention" if pooled else "own", "classes": list(model.classes), "history": model.history}
    write_text(folder / CARD, json.dumps(card, indent=2, ensure_ascii=False) + "\n")


def _attentive(folder: Path, config: Any, tokenizer: Any, dtype: torch.dtype) -> Attentive:
    """The encoder in the folder with the attention head stored beside it."""
    inner = encoder_of(str(folder), config, dtype)
    network = Attentive(inner, traits(inner, tokenizer, str(folder)), config.num_labels).to(dtype)
    with library_errors(lambda reason: f"{folder / HEAD} is damaged ({reason}); train it again or copy it anew."):
        own = load_file(folder / HEAD)
        network.alignment.load_state_dict(under(own, "alignment"))
        network.decoder.load_state_dict(under(own, "decoder"))
    return network


def _classes(config: Any, options: Opening, name: str) -> tuple[tuple[str, ...], int | None]:
    """The names of the classes, and the label that is audited where labels are independent."""
    own = tuple(str(config.id2label[number]) for number in range(config.num_labels))
    given = options.classes or own
    if len(given) != len(own):
        raise AssayError(f"{name} has {len(own)} classes ({', '.join(own)}), not {len(given)}; name each once.")
    if config.problem_type != "multi_label_classification":
        if options.label is not None:
            raise AssayError(f"{name} chooses one of its classes; a label is named for models with independent labels.")
        return given, None
    if options.label is None:
        raise AssayError(f"{name} has independent labels; name the one to audit with --label: {', '.join(given)}.")
    if options.label not in given:
        raise unknown("label", options.label, given)
    return (f"not {options.label}", options.label), given.index(options.label)


def _card(folder: Path) -> dict[str, Any]:
    path = folder / CARD
    if not path.is_file():
        return {}
    try:
        card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise AssayError(f"{path} is damaged ({fault}); copy the model anew.") from fault
    return card

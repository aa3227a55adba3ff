"""Loads transformers from a folder, or by name from the Hugging Face hub, ready to be explained."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from assay.data.fetch import SOURCES, member
from assay.errors import AssayError, library_errors, unknown
from assay.files import write_text
from assay.models.hf_attention import compiled, quiet
from assay.models.hf_body import Body
from assay.models.hf_models import Attentive, Pretrained, SubwordPretrained, traits
from assay.models.hf_subwords import SubwordOptions, SubwordTokeniser
from assay.models.parallel import parallel
from assay.models.store import Opened, save_tensors, under

ENCODERS = {"minilm": "minilm"}
"""The name of each encoder, and of the source that holds it. MiniLM: Wang et al. (2020), 6 layers of 12 heads."""


def located(name: str) -> str:
    """The local path of the encoder of that name, fetched first if needed; any other name unchanged."""
    if name not in ENCODERS or Path(name).is_dir():
        return name
    source = SOURCES[ENCODERS[name]]
    paths = {member(source, listed.name) for listed in source.members}
    return str(next(iter(paths)).parent)


ENDLESS = 100_000  # a larger number of subwords means that none was stated
CLASSIFIER = "AutoModelForSequenceClassification"
POOLING = ("bert", "roberta", "xlm-roberta", "camembert")  # their encoders take an option to leave the pooler out
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}


def is_folder(path: Path) -> bool:
    """Whether the folder holds a Hugging Face model."""
    return (path / "config.json").is_file()


@contextmanager
def silent() -> Iterator[None]:
    """Context manager: silences the library; assay does its own checks and messages."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if shown:
            logging.enable_progress_bar()


def library() -> Any:
    """The transformers library, or an error that says how to install it."""
    try:
        import transformers
    except ImportError as fault:
        raise AssayError(
            "Models of Hugging Face need the transformers library; install it: pip install 'assay[hf]'."
        ) from fault
    return transformers


def _pretrained(kind: str, name: str, **options: Any) -> Any:
    """One of the library's Auto classes, from a folder or the hub; weights are safetensors, and no code is run."""
    transformers = library()
    with silent(), _explained(name):
        return getattr(transformers, kind).from_pretrained(
            name, trust_remote_code=False, local_files_only=_local(name), **options
        )


def tokenizer_of(name: str, config: Any) -> SubwordTokeniser:
    """The tokenizer of a model, and the number of subwords of a text that fit into the model."""
    return fitted(_pretrained("AutoTokenizer", name), config, name)


def fitted(inner: Any, config: Any, name: str) -> SubwordTokeniser:
    """The tokenizer, with the number of subwords that fit beside special tokens."""
    if not getattr(inner, "is_fast", False):
        raise AssayError(
            f"{name} has no fast tokenizer, so its subwords have no character offsets; add a tokenizer.json."
        )
    room = [inner.model_max_length, getattr(config, "max_position_embeddings", None) or ENDLESS]
    positions = getattr(config, "pad_token_id", 0) or 0
    if config.model_type in ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl"):
        room[1] -= positions + 1  # the first positions are not used
    longest = min([each for each in room if each < ENDLESS], default=ENDLESS) - inner.num_special_tokens_to_add(
        pair=True
    )
    return SubwordTokeniser(inner, SubwordOptions(longest=longest))


def configuration(name: str) -> Any:
    """A model's configuration, read before its weights; an error where it cannot be used."""
    library()
    if (folder := Path(name)).is_dir():
        _check_weights(folder)
    return _pretrained("AutoConfig", name)


def classifier_of(name: str, config: Any, dtype: torch.dtype) -> Any:
    """The classifier with all its weights."""
    options = {"config": config, "dtype": dtype, "use_safetensors": True}
    inner, report = _pretrained(CLASSIFIER, name, output_loading_info=True, **options)
    if missing := sorted(report["missing_keys"]):
        raise AssayError(
            f"{name} has no trained classification head ({missing[0]} is missing); fine-tune it first: "
            f"assay train --model {name} --corpus ..."
        )
    if config.num_labels < 2:
        raise AssayError(f"{name} gives one number, not classes: it is a regression, and only classifiers are audited.")
    return inner.eval()


def headed(name: str, config: Any) -> Any:
    """The encoder with a new head for the number of classes in the configuration; one for other classes gives way."""
    options = {"config": config, "dtype": torch.float32, "use_safetensors": True}
    return _pretrained(CLASSIFIER, name, ignore_mismatched_sizes=True, **options).eval()


def encoder_of(name: str, config: Any, dtype: torch.dtype) -> Any:
    """The encoder without a classification head."""
    options = {"config": config, "dtype": dtype, "use_safetensors": True}
    if "pooler" in str(config.architectures).lower() or config.model_type in POOLING:
        options["add_pooling_layer"] = False
    return _pretrained("AutoModel", name, **options).eval()


def _check_weights(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise AssayError(f"{folder} is not a model folder: it has neither a model.json nor a config.json.")
    if not any(folder.glob("*.safetensors")):
        pickled = next(iter([*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.h5")]), None)
        held = (
            "no weights"
            if pickled is None
            else f"its weights as {pickled.name} only, which may run code when it is read"
        )
        raise AssayError(f"{folder} holds {held}; save it anew with model.save_pretrained(folder), as safetensors.")
    try:
        json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as fault:
        raise AssayError(f"{folder / 'config.json'} is damaged ({fault}); copy the model anew.") from fault


def _local(name: str) -> bool:
    """Whether the network must not be used: for folders, and where the library is set offline."""
    return Path(name).is_dir() or os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "TRUE", "YES", "ON"}


def _explained(name: str) -> AbstractContextManager[None]:
    """Context manager: turns the library's exceptions into one sentence."""
    if Path(name).is_dir():
        return library_errors(lambda reason: f"{name} could not be read ({reason}).")
    return library_errors(
        lambda reason: (
            f"{name} is no folder or preset here, and could not be had from the hub; check the name and the "
            f"network ({reason})."
        )
    )


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
        save_tensors(own, folder / HEAD)
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

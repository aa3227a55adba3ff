"""Loads a model from a folder, or by name from the Hugging Face hub."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import torch

from assay.errors import AssayError, library_errors
from assay.models.huggingface.attending import quiet
from assay.models.huggingface.subwords import SubwordOptions, SubwordTokeniser

ENDLESS = 100_000  # a larger number of subwords means that none was stated
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


def tokenizer_of(name: str, config: Any) -> SubwordTokeniser:
    """The tokenizer of a model, and the number of subwords of a text that fit into the model."""
    with silent(), _explained(name):
        inner = library().AutoTokenizer.from_pretrained(name, trust_remote_code=False, local_files_only=_local(name))
    return fitted(inner, config, name)


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
    transformers = library()
    folder = Path(name)
    if folder.is_dir():
        _check_weights(folder)
    with silent(), _explained(name):
        return transformers.AutoConfig.from_pretrained(name, trust_remote_code=False, local_files_only=_local(name))


def classifier_of(name: str, config: Any, dtype: torch.dtype) -> Any:
    """The classifier with all its weights."""
    transformers = library()
    with silent(), _explained(name):
        inner, report = transformers.AutoModelForSequenceClassification.from_pretrained(
            name,
            config=config,
            dtype=dtype,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=_local(name),
            output_loading_info=True,
        )
    if missing := sorted(report["missing_keys"]):
        raise AssayError(
            f"{name} has no trained classification head ({missing[0]} is missing); fine-tune it first: "
            f"assay train --model {name} --corpus ..."
        )
    if config.num_labels < 2:
        raise AssayError(f"{name} gives one number, not classes: it is a regression, and only classifiers are audited.")
    return inner.eval()


def headed(name: str, config: Any) -> Any:
    """The encoder with a new head for the number of classes in the configuration."""
    transformers = library()
    with silent(), _explained(name):
        return transformers.AutoModelForSequenceClassification.from_pretrained(
            name,
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=_local(name),
            ignore_mismatched_sizes=True,  # a head for other classes gives way
        ).eval()


def encoder_of(name: str, config: Any, dtype: torch.dtype) -> Any:
    """The encoder without a classification head."""
    transformers = library()
    options: dict[str, Any] = {"dtype": dtype, "use_safetensors": True}
    if "pooler" in str(config.architectures).lower() or config.model_type in (
        "bert",
        "roberta",
        "xlm-roberta",
        "camembert",
    ):
        options["add_pooling_layer"] = False
    with silent(), _explained(name):
        return transformers.AutoModel.from_pretrained(
            name, config=config, trust_remote_code=False, local_files_only=_local(name), **options
        ).eval()


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

"""Measures the properties of a transformer at loading time, by running it on two made-up texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from assay.errors import AssayError, library_errors
from assay.models.huggingface.attending import implemented, quiet, register
from assay.models.huggingface.body import Traits
from assay.models.huggingface.layout import Template
from assay.models.huggingface.pretrained import Pretrained
from assay.types import Batch

TOLERANCE = {torch.float64: 1e-5, torch.float32: 1e-5, torch.bfloat16: 0.1, torch.float16: 0.02}  # of the largest logit
LENGTHS = (6, 3)


def traits(inner: Any, tokenizer: Any, name: str) -> Traits:
    """The traits of a loaded model; an error where its outputs through assay differ from its own."""
    register()
    kind = type(inner).__name__
    refusal = f"{name} ({kind}) cannot be read with embeddings in place of words"
    with quiet(), library_errors(lambda reason: f"{refusal} ({reason})."):
        return _found(inner, tokenizer, name)


def _found(inner: Any, tokenizer: Any, name: str) -> Traits:
    """Measures all traits; an error where the model's outputs through assay differ from its own."""
    found = _stated(inner, tokenizer, name)
    sides = (replace(found, left=left) for left in (False, True))
    try:
        expected = _plain(inner, found)
        found = next((each for each in sides if _agree(_answer(inner, each), expected)), None)  # type: ignore[assignment]
    except ValueError as fault:
        if inner.config.pad_token_id is not None:
            raise
        raise AssayError(
            f"The configuration of {name} has no padding token, so texts cannot be read together; set its pad_token_id "
            f"to {tokenizer.pad_token_id}, which is the tokenizer's, and save it."
        ) from fault
    if found is None:
        raise AssayError(
            f"{name} answers otherwise when it is given embeddings instead of words; it cannot be explained."
        )
    found = replace(found, unedited=_unedited(inner, found, expected, name))
    found = replace(found, reads=_reads(inner, found))
    return replace(found, brief=_brief(inner, found, expected))


def _stated(inner: Any, tokenizer: Any, name: str) -> Traits:
    """The traits stated by configuration and tokenizer."""
    if tokenizer.pad_token_id is None:
        raise AssayError(
            f"The tokenizer of {name} has no padding token, so texts cannot be read together; set its pad_token "
            "and the pad_token_id of the model's configuration, and save both."
        )
    single, pair = Template.of(tokenizer, False), Template.of(tokenizer, True)
    mask = tokenizer.mask_token_id if tokenizer.mask_token_id is not None else tokenizer.unk_token_id
    special = [number for number in tokenizer.all_special_ids if number < 1000]
    return Traits(
        single=single,
        pair=pair,
        left=False,
        typed="token_type_ids" in tokenizer.model_input_names,
        reads="first",
        unedited=None,
        layers=int(inner.config.num_hidden_layers),
        pad=int(tokenizer.pad_token_id),
        mask=int(tokenizer.pad_token_id if mask is None else mask),
        special=max(special, default=-1) + 1,
    )


def _texts(inner: Any, found: Traits) -> Batch:
    """Two texts of different length, of subwords that stand for words."""
    words = inner.get_input_embeddings().num_embeddings
    generator = torch.Generator().manual_seed(0)
    low = min(found.special, words - 1)
    ids = torch.randint(low, words, (len(LENGTHS), max(LENGTHS)), generator=generator)
    ids = torch.where(torch.isin(ids, torch.tensor([found.pad])), words - 1, ids)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return Batch(ids, mask, torch.zeros(len(LENGTHS), dtype=torch.long)).to(inner.device)


@torch.no_grad()
def _plain(inner: Any, found: Traits) -> Float[Tensor, "B C"]:
    """The reference output: the library's own eager attention, ids as input, padding on the right.

    Where that is no number, each text is read alone: in double precision, some architectures make none of a position of
    padding that may attend to nothing.
    """
    texts = _texts(inner, found)
    rows = [ids[:count].tolist() for ids, count in zip(texts.ids, LENGTHS, strict=True)]
    together = _eager(inner, found, rows)
    if bool(together.isfinite().all()):
        return together
    return torch.cat([_eager(inner, found, [text]) for text in rows])


def _eager(inner: Any, found: Traits, texts: list[list[int]]) -> Float[Tensor, "B C"]:
    """The output of eager attention for some texts."""
    around, (before, kind, between, _, after) = found.single, found.single.types
    longest = max(map(len, texts))
    spare = [longest - len(text) for text in texts]
    rows = [[*around.before, *text, *around.between, *around.after] for text in texts]
    kinds = [[*before, *kind * len(text), *between, *after] for text in texts]
    ids, types, seen = (
        torch.tensor([row + [filler] * more for row, more in zip(part, spare, strict=True)], device=inner.device)
        for part, filler in ((rows, found.pad), (kinds, 0), ([[1] * len(row) for row in rows], 0))
    )
    typed = {"token_type_ids": types} if found.typed else {}
    with implemented(inner, "eager"):
        return _said(inner(input_ids=ids, attention_mask=seen, **typed), seen)


def _answer(inner: Any, found: Traits, edit: Any = None, brief: bool = False) -> Float[Tensor, "B C"]:
    """The output through assay."""
    model, texts = Pretrained(inner, found), _texts(inner, found)
    with torch.no_grad():
        given = model.sequence(model.embed(texts), texts)
        return _said(model.read(given, edit, brief=brief)[0], given.mask)


def _said(answer: Any, mask: Tensor) -> Float[Tensor, "B C"]:
    """The logits, or of an encoder the mean of its hidden states."""
    if hasattr(answer, "logits"):
        logits: Tensor = answer.logits
        return logits
    states: Tensor = answer.last_hidden_state
    return (states * mask[..., None]).sum(1) / mask.sum(-1, keepdim=True)


def _agree(found: Tensor, expected: Tensor) -> bool:
    scale = max(1.0, float(expected.abs().max()))
    return bool((found - expected).abs().max() <= TOLERANCE[expected.dtype] * scale)


def _unedited(inner: Any, found: Traits, expected: Tensor, name: str) -> str | None:
    """Why attention cannot be edited, or None: assay's attention must be called in every layer and change nothing."""
    said = f"The attention of {name} ({type(inner).__name__}) cannot be edited: "
    try:
        same = _answer(inner, found, lambda weights, mask: weights)
    except AssayError:
        return said + "the architecture does not use the library's attention interface."
    return None if _agree(same, expected) else said + "it is not plain attention."


def _brief(inner: Any, found: Traits, expected: Tensor) -> bool:
    """Whether outputs stay the same if the last layer is computed only at the position that the classifier reads."""
    if found.reads != ("last" if found.left else "first") or Pretrained(inner, found).joint is None:
        return False
    try:
        return _agree(_answer(inner, found, brief=True), expected)
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):  # the part is not what its name says
        return False


def _reads(inner: Any, found: Traits) -> str:
    """The position that the classifier reads, found by the gradient with respect to the last hidden states."""
    model, texts = Pretrained(inner, found), _texts(inner, found)[:1]
    tops: list[Any] = []  # asking the library for states would leave hooks of its own in the model
    hook = inner.base_model.register_forward_hook(lambda module, given, answer: tops.append(answer))
    try:
        with torch.enable_grad():
            x = model.embed(texts).detach().requires_grad_()
            answer, _ = model.read(model.sequence(x, texts))
            if not hasattr(answer, "logits"):
                return "mean"  # of an encoder every state is read
            states = tops[-1][0]
            first = answer.logits[:, 0].float().sum()  # the gradients of all classes may add up to 0
            (gradient,) = torch.autograd.grad(first, states, allow_unused=True)
    finally:
        hook.remove()
    used = None if gradient is None else (gradient[0].abs().amax(-1) > 0).nonzero().flatten().tolist()
    if used == [0]:
        return "first"
    return "last" if used == [states.shape[1] - 1] else "mean"

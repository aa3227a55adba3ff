"""Hugging Face classifiers: as they are, or an encoder with an attention head; and their measured traits."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from assay.errors import AssayError, library_errors
from assay.models.encoders import Additive
from assay.models.hf_attention import implemented, quiet, register
from assay.models.hf_body import Body, Template, Traits
from assay.models.projections import softmax
from assay.models.textmodel import WordItems
from assay.types import Batch, Edit, Embeddings, Logits, Output, TokenStates, TokenWeights


class Pretrained(Body):
    """An AutoModelForSequenceClassification; of one with independent labels, the yes or no of one label."""

    def __init__(
        self, inner: Any, traits: Traits, label: int | None = None, autocast: torch.dtype | None = None
    ) -> None:
        super().__init__(inner, traits)
        self.label = label
        self.autocast = autocast  # the precision of training

    @property
    def classes(self) -> int:
        return int(self.inner.config.num_labels) if self.label is None else 2

    @property
    def facts(self) -> dict[str, str]:
        kind, layers, heads = type(self.inner).__name__, self.layers, self.inner.config.num_attention_heads
        description = f"{kind}, {layers} layers of {heads} heads, {str(self.inner.dtype).removeprefix('torch.')}"
        return {"description": description, "shape": "transformer", "items": "words"}

    def forward(self, x: Embeddings, batch: Batch, edit: Edit | None = None) -> Output:
        training = self.training and self.autocast is not None
        with torch.autocast(x.device.type, self.autocast) if training else nullcontext():
            given = self.sequence(x, batch)
            answer, weights = self.read(given, edit, keep=edit is not None, brief=self.traits.brief)
        return self.counted(Output(self._chosen(answer.logits), tuple(weights)))

    def layered(self, x: Embeddings, batch: Batch, edit: Edit | None = None) -> Output:
        """As the call, with the weights of each layer, and the position that the classifier reads."""
        given = self.sequence(x, batch)
        answer, weights = self.read(given, edit, keep=True)
        return self.counted(Output(self._chosen(answer.logits), (*weights, self.reading(given))))

    def _chosen(self, logits: Logits) -> Float[Tensor, "B K"]:
        if self.label is None:
            return logits
        wanted = logits[:, self.label]
        return torch.stack([torch.zeros_like(wanted), wanted], dim=-1)  # their softmax is the label's sigmoid

    @property
    def cascade(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("classifier", *self.stack)

    def part(self, name: str) -> nn.Module:
        return self._head if name == "classifier" else self.below(name)

    def around(self, inner: Any) -> Pretrained:
        return type(self)(inner, self.traits, self.label, self.autocast)

    @property
    def _head(self) -> nn.Module:
        """All modules outside the library's base model, and its pooler if there is one."""
        base = self.inner.base_model
        above = [part for name, part in self.inner.named_children() if part is not base]
        pooler = getattr(base, "pooler", None)
        return nn.ModuleList([*above, *([] if pooler is None else [pooler])])


class SubwordPretrained(Pretrained):
    """The same with subwords as tokens: each has a row in the embedding table."""

    @property
    def vectors(self) -> Float[Tensor, "V D"]:
        table: Tensor = self.embedding.weight  # type: ignore[assignment]
        return table


class Attentive(WordItems, Body):
    """A pooled model: a word's hidden state is the mean of its subwords', and attention pools the words."""

    def __init__(self, inner: Any, traits: Traits, classes: int, autocast: torch.dtype | None = None) -> None:
        super().__init__(inner, traits)
        size = int(inner.config.hidden_size)
        self.alignment = Additive(size, size // 2)
        self.decoder = nn.Linear(size, classes)
        self.autocast = autocast

    @property
    def classes(self) -> int:
        return self.decoder.out_features

    @property
    def facts(self) -> dict[str, str]:
        kind, layers, heads = type(self.inner).__name__, self.layers, self.inner.config.num_attention_heads
        description = f"attention over the words of {kind}, {layers} layers of {heads} heads"
        return {"description": description, "shape": "pooled transformer", "items": "words"}

    def states(self, x: Embeddings, batch: Batch) -> TokenStates:
        return self._states(x, batch, keep=False)[0]

    def _states(self, x: Embeddings, batch: Batch, keep: bool) -> tuple[TokenStates, list[Tensor]]:
        given = self.sequence(x, batch)
        with torch.autocast(x.device.type, self.autocast, enabled=self.autocast is not None and self.training):
            answer, weights = self.read(given, keep=keep)
        states = answer.last_hidden_state.to(self.decoder.weight.dtype)
        return given.shares(batch.ids.shape[1], states.dtype).mT @ states, weights

    def attend(self, states: TokenStates, batch: Batch) -> TokenWeights:
        return softmax(self.alignment(states), batch.mask)

    def decode(self, states: TokenStates, weights: TokenWeights) -> Logits:
        logits: Tensor = self.decoder((weights[:, None] @ states).squeeze(1))
        return logits

    def forward(self, x: Embeddings, batch: Batch, edit: Edit | None = None) -> Output:
        """The edit is applied to the attention that pools."""
        states = self.states(x, batch)
        weights = self.attend(states, batch)
        if edit is not None:
            weights = edit(weights, batch.mask)
        return self.counted(Output(self.decode(states, weights), (weights,)))

    def layered(self, x: Embeddings, batch: Batch) -> Output:
        states, below = self._states(x, batch, keep=True)
        weights = self.attend(states, batch)
        return self.counted(Output(self.decode(states, weights), (*below, weights)))

    @property
    def cascade(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("decoder", "alignment", *self.stack)

    def part(self, name: str) -> nn.Module:
        own: dict[str, nn.Module] = {"decoder": self.decoder, "alignment": self.alignment}
        return own[name] if name in own else self.below(name)

    def around(self, inner: Any) -> Attentive:
        return Attentive(inner, self.traits, self.classes, self.autocast)


# Traits: measured at loading time, by running the model on two made-up texts.


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
    stated = _stated(inner, tokenizer, name)
    try:
        expected = _Trial(inner, stated).expected()
        sides = (_Trial(inner, replace(stated, left=left)) for left in (False, True))
        trial = next((each for each in sides if _agree(each.answer(), expected)), None)
    except ValueError as fault:
        if inner.config.pad_token_id is not None:
            raise
        raise AssayError(
            f"The configuration of {name} has no padding token, so texts cannot be read together; set its pad_token_id "
            f"to {tokenizer.pad_token_id}, which is the tokenizer's, and save it."
        ) from fault
    if trial is None:
        raise AssayError(
            f"{name} answers otherwise when it is given embeddings instead of words; it cannot be explained."
        )
    trial = _Trial(inner, replace(trial.traits, unedited=trial.unedited(expected, name)))
    trial = _Trial(inner, replace(trial.traits, reads=trial.reads()))
    return replace(trial.traits, brief=trial.brief(expected))


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


@dataclass(frozen=True)
class _Trial:
    """A model with the traits that it is taken to have, and two made-up texts that it reads."""

    inner: Any
    traits: Traits

    @cached_property
    def model(self) -> Pretrained:
        return Pretrained(self.inner, self.traits)

    @cached_property
    def texts(self) -> Batch:
        """Two texts of different length, of subwords that stand for words."""
        words = self.inner.get_input_embeddings().num_embeddings
        generator = torch.Generator().manual_seed(0)
        low = min(self.traits.special, words - 1)
        ids = torch.randint(low, words, (len(LENGTHS), max(LENGTHS)), generator=generator)
        ids = torch.where(ids == self.traits.pad, words - 1, ids)
        mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
        return Batch(ids, mask, torch.zeros(len(LENGTHS), dtype=torch.long)).to(self.inner.device)

    @torch.no_grad()
    def expected(self) -> Logits:
        """The reference output: the library's own eager attention, ids as input, padding on the right.

        Where that is no number, each text is read alone: in double precision, some architectures make none of a
        position of padding that may attend to nothing.
        """
        rows = [ids[:count].tolist() for ids, count in zip(self.texts.ids, LENGTHS, strict=True)]
        together = self._eager(rows)
        if bool(together.isfinite().all()):
            return together
        return torch.cat([self._eager([text]) for text in rows])

    def _eager(self, texts: list[list[int]]) -> Logits:
        """The output of eager attention for some texts."""
        around, (before, kind, between, _, after) = self.traits.single, self.traits.single.types
        rows = [[*around.before, *text, *around.between, *around.after] for text in texts]
        kinds = [[*before, *kind * len(text), *between, *after] for text in texts]
        ids, types, seen = (
            pad_sequence([torch.tensor(row) for row in part], True, filler).to(self.inner.device)
            for part, filler in ((rows, self.traits.pad), (kinds, 0), ([[1] * len(row) for row in rows], 0))
        )
        typed = {"token_type_ids": types} if self.traits.typed else {}
        with implemented(self.inner, "eager"):
            return _said(self.inner(input_ids=ids, attention_mask=seen, **typed), seen)

    @torch.no_grad()
    def answer(self, edit: Edit | None = None, brief: bool = False) -> Logits:
        """The output through assay."""
        given = self.model.sequence(self.model.embed(self.texts), self.texts)
        return _said(self.model.read(given, edit, brief=brief)[0], given.mask)

    def unedited(self, expected: Logits, name: str) -> str | None:
        """Why attention cannot be edited, or None: an edit must be called in every layer, and can change nothing."""
        said = f"The attention of {name} ({type(self.inner).__name__}) cannot be edited: "
        try:
            same = self.answer(lambda weights, mask: weights)
        except AssayError:
            return said + "the architecture does not use the library's attention interface."
        return None if _agree(same, expected) else said + "it is not plain attention."

    def brief(self, expected: Logits) -> bool:
        """Whether outputs stay the same if the last layer is computed only where the classifier reads."""
        if self.traits.reads != ("last" if self.traits.left else "first") or self.model.joint is None:
            return False
        try:
            return _agree(self.answer(brief=True), expected)
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):  # the part is not what its name says
            return False

    def reads(self) -> str:
        """The position that the classifier reads, found by the gradient with respect to the last hidden states."""
        model, text = self.model, self.texts[:1]
        tops: list[Any] = []  # asking the library for states would leave hooks of its own in the model
        hook = self.inner.base_model.register_forward_hook(lambda module, given, answer: tops.append(answer))
        try:
            with torch.enable_grad():
                x = model.embed(text).detach().requires_grad_()
                answer, _ = model.read(model.sequence(x, text))
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


def _said(answer: Any, mask: Tensor) -> Logits:
    """The logits, or of an encoder the mean of its hidden states."""
    if hasattr(answer, "logits"):
        logits: Tensor = answer.logits
        return logits
    states: Tensor = answer.last_hidden_state
    return (states * mask[..., None]).sum(1) / mask.sum(-1, keepdim=True)


def _agree(found: Tensor, expected: Tensor) -> bool:
    scale = max(1.0, float(expected.abs().max()))
    return bool((found - expected).abs().max() <= TOLERANCE[expected.dtype] * scale)

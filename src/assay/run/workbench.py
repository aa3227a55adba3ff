"""A live model under a person's hands: explained, and with its attention changed, a text at a time."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.console import Group
from rich.text import Text
from torch import Tensor

from assay.audits.stack import stacked
from assay.caching import LruCache
from assay.data.batches import Tokenised, collate
from assay.data.examples import Span
from assay.errors import AssayError
from assay.explainers import EXPLAINERS, USUAL
from assay.explainers.needs import no_weights, unfit
from assay.explainers.phrase_trees import TREES
from assay.intervene import EDITS
from assay.intervene.edits import ACTS, EDIT, Act
from assay.models.hf_body import Body
from assay.models.store import Opened
from assay.plugins import member, offered
from assay.report.trees import drawn
from assay.run.api import listing, one_text, opened_model, read
from assay.run.attending import PooledText, Scene, StackText
from assay.run.explaining import explain
from assay.types import Edit, PooledModel, StackedModel

TEXTS, BYTES = 32, 256 << 20
"""Texts that are kept as they were read, and how much room they may take; the last one always stays."""

CURVED = "The answer is not linear in the attention of a stack, so the likeliest cannot be found with certainty."


class Workbench:
    """An opened model with the name that it was given by, and the options that it was read with."""

    def __init__(self, model: Opened, name: str, options: Sequence[str] = ()) -> None:
        self.model, self.name, self.options = model, name, tuple(options)
        self._texts: LruCache[PooledText | StackText] = LruCache(BYTES, lambda text: max(text.size, BYTES // TEXTS))

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the model is: its classes, what it reads and attends to, which explainers serve it."""
        network = self.model.network
        reasons = {name: unfit(each, network) for name, each in EXPLAINERS.items()}
        stack = self.attention == "stack"
        return {
            "name": self.name,
            "classes": list(self.model.classes),
            "paired": network.paired,
            "attention": self.attention,
            "items": network.facts["items"],
            "layers": network.layers if stack and isinstance(network, Body) else 0,
            "heads": int(network.inner.config.num_attention_heads) if stack and isinstance(network, Body) else 0,
            "acts": self.refusals,
            "explainers": [
                {"name": name, "meaning": meaning, "why_not": _sentence(reasons[name])}
                for name, (meaning, _) in listing("explainers").items()
            ],
            "usual": [name for name in ("rationale", *USUAL) if reasons[name] is None],
            "trees": [name for name, each in TREES.items() if each.unfit(network) is None],
            "device": str(self.model.device),
            "options": list(self.options),
            "description": network.facts["description"],
        }

    @property
    def attention(self) -> str:
        """What is attended with: one attention that is "pooled" over, a "stack" of layers, or "none" at all."""
        if isinstance(self.model.network, PooledModel):
            return "pooled"
        return "stack" if stacked(self.model.network) else "none"

    @cached_property
    def refusals(self) -> dict[str, str | None]:
        """Why each act cannot be done here, or None."""
        network = self.model.network
        if self.attention == "none":
            return dict.fromkeys(ACTS, _sentence(no_weights(network)))
        refused: dict[str, str | None] = dict.fromkeys(ACTS)
        if self.attention == "stack":
            refused["likeliest"] = CURVED
            closed = network.traits.unedited if isinstance(network, Body) else None
            refused |= {} if closed is None else dict.fromkeys([kind for kind in ACTS if kind != "observed"], closed)
        return refused

    def explain(
        self,
        text: str,
        query: str | None = None,
        explainers: Sequence[str] = (),
        target: str | None = None,
        tree: str | None = None,
    ) -> dict[str, Any]:
        """The decision and the scores of each word; without names, by the usual explainers that serve the model.

        With a tree, the hierarchy of phrases as well, as numbers and as it is drawn.
        """
        names = tuple(explainers) or tuple(self.about["usual"])
        answer = explain(self.model, text, names, target=target, query=query, tree=tree)
        asked = ["--explainers", ",".join(names)]
        for option, value in (("--target", target), ("--tree", tree)):
            asked += [] if value is None else [option, value]
        drawings = {name: drawn(each, answer.words) for name, each in answer.trees.items()}
        found = answer.json() | {"drawn": drawings}
        return found | {"command": self._command("explain", text, query, asked)}

    def attend(self, text: str, query: str | None, act: Act) -> dict[str, Any]:
        """The decision under other attention, beside the one without."""
        if (refused := self.refusals["uniform" if act.kind == EDIT else act.kind]) is not None:
            raise AssayError(refused)
        ready = self._texts.get((text, query), lambda: self._read(text, query))
        found = ready(act).json(ready.scene, act)
        return found | {"command": self._command("attend", text, query, written(act))}

    def _read(self, text: str, query: str | None) -> PooledText | StackText:
        network = self.model.network
        row = read(self.model, text, query)
        batch = collate([row], len(self.model.classes)).to(self.model.device)
        if isinstance(network, PooledModel):
            return PooledText(network, batch, self._scene(text, row, network.items(batch)[0].tolist()))
        assert isinstance(network, StackedModel)
        return StackText(network, batch, self._scene(text, row, range(len(row.ids))))

    def _scene(self, text: str, row: Tokenised, item_of: Sequence[int]) -> Scene:
        spans = tuple((start, end) for start, end in row.spans.tolist())
        parts: list[list[Span]] = [[] for _ in range(max(item_of) + 1)]
        for span, item in zip(spans, item_of, strict=True):
            parts[item].append(span)
        items = tuple(text[min(part)[0] : max(end for _, end in part)] for part in parts)
        unit = self.model.network.facts["items"].removesuffix("s")
        return Scene(text, spans, items, tuple(item_of), unit, tuple(self.model.classes))

    def _command(self, verb: str, text: str, query: str | None, options: Sequence[str]) -> str:
        asked = [] if query is None else [f"--query={query}"]
        ending = ["--", text] if text.startswith("-") else [text]
        return shlex.join(["assay", verb, "--model", self.name, *self.options, *asked, *options, *ending])


@dataclass(frozen=True)
class Attended:
    """A decision on a text under other attention beside the one without, as plain numbers and words."""

    text: str
    answer: dict[str, Any]

    def __rich__(self) -> Group:
        return _coloured(self.answer, self.text)

    def __str__(self) -> str:
        return _plain(self.answer)


def attend(
    model: Any,
    text: str,
    act: str | Act | Edit = "observed",
    query: str | None = None,
    *,
    weights: Mapping[int, float] | None = None,
    items: Sequence[int] = (),
    target: str | None = None,
    seed: int = 0,
    epsilon: float = 0.01,
    layer: int | None = None,
    head: int | None = None,
    position: int | None = None,
) -> Attended:
    """The decision on a text under other attention, and how far it moves.

    An act is one of ACTS, an edit of EDITS by its name, or an edit itself: a function of weights and mask. The
    `weights` are those of "set", the `items` those of "erase", the `target` is the class of "likeliest", the `seed`
    that of "permute", and `epsilon` the change of the output that "furthest" may make. Of a transformer it is done in
    one layer or all, one head or all, for the word at one position that attends or for all; all are counted from 0.
    """
    if not isinstance(act, Act):
        edit = _named_edit(act) if isinstance(act, str) else act
        kind = EDIT if edit is not None else str(act)
        act = Act(kind, dict(weights or {}), tuple(items), target, seed, epsilon, layer, head, position, edit)
    found = Workbench(opened_model(model), "").attend(one_text(text), query, act)
    return Attended(text, found | {"command": "assay.attend(...) in Python"})


def _named_edit(name: str) -> Edit | None:
    """The edit of that name, made from the weights that it is given; None where the name is that of an act."""
    if name in ACTS or not (name in EDITS or name in offered("edit")):
        return None
    made = member(name, EDITS, "edit")

    def edit(weights: Tensor, mask: Tensor) -> Tensor:
        return made(weights)(weights, mask)

    edit.__name__ = name
    return edit


ANSWERS = (("predicted_before", "before"), ("predicted_after", "after"))


def _lines(found: dict[str, Any]) -> list[str]:
    """The answer before and after, the distances, and the note."""
    old, new = (f"{found[name]}  {found[part][found[name]]:.1%}" for name, part in ANSWERS)
    most = "" if found["jsd_upper"] is None else f", at most {found['jsd_upper']:.4f}"
    lines = [
        f"{old}  →  {new}",
        f"answer moved by {found['tvd']:.4f} (TVD), attention by {found['jsd']:.4f} (JSD{most}), {found['kind']}",
        found["note"],
    ]
    if "reach" in found:
        reach = ", ".join(f"{name} {share:.1%}" for name, share in found["reach"].items())
        lines.append(f"likeliest by attention alone: {reach}")
    return lines


def _elsewhere(found: dict[str, Any]) -> list[str]:
    if max(found["elsewhere"], found["elsewhere_after"]) < 5e-5:
        return []
    return [f"on markers and question: {found['elsewhere']:.1%} before, {found['elsewhere_after']:.1%} after"]


def _coloured(found: dict[str, Any], text: str) -> Group:
    """The text twice, with its weights as colours."""
    from assay.report.heatmaps import terminal

    starts, ends = zip(*found["spans"], strict=True)
    first, *others = _lines(found)
    lines: list[Text] = [Text(first, style="bold"), *(Text(line) for line in others)]
    for title, weights in (("before", found["observed"]), ("after", found["weights"])):
        shown = [weights[item] for item in found["item_of"]]
        lines += [Text(f"\n{title}", style="dim"), terminal(text, starts, ends, shown)]
    return Group(*lines, *(Text(f"\n{line}", style="dim") for line in _elsewhere(found)))


def _plain(found: dict[str, Any]) -> str:
    """The same as a table with a row for each item."""
    labels = [f"{number}  {' '.join(label.split())}" for number, label in enumerate(found["items"])]
    labels = [label if len(label) <= 48 else f"{label[:47]}…" for label in labels]
    width = max(map(len, labels))
    rows = [
        f"{label.ljust(width)}  {old:8.4f}  {new:8.4f}"
        for label, old, new in zip(labels, found["observed"], found["weights"], strict=True)
    ]
    return "\n".join([*_lines(found), f"{' ' * width}    before     after", *rows, *_elsewhere(found)])


def written(act: Act) -> list[str]:
    """The act as options of the command line."""
    options = ["--act", act.kind]
    usual = Act()
    if act.weights:
        options += ["--weights", ",".join(f"{item}={float(weight)!r}" for item, weight in act.weights.items())]
    if act.items:
        options += ["--items", ",".join(map(str, act.items))]
    names = ("target", "seed", "epsilon", "layer", "head", "place")
    for name in names:
        if (value := getattr(act, name)) != getattr(usual, name):
            options.append(f"--{'position' if name == 'place' else name}={value}")
    return options


def _sentence(reason: str | None) -> str | None:
    """What is lacking, as a sentence of its own."""
    return None if reason is None else f"{reason[:1].upper()}{reason[1:].removesuffix('.')}."

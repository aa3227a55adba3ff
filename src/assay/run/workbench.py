"""A live model under a person's hands: explained, and with its attention changed, a text at a time."""

from __future__ import annotations

import shlex
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from assay.audits.stack import stacked
from assay.data.batches import Tokenised, collate
from assay.data.examples import Span
from assay.errors import AssayError
from assay.explainers import EXPLAINERS, USUAL
from assay.explainers.hierarchies import TREES
from assay.explainers.needs import no_weights, unfit
from assay.intervene.acts import ACTS, Act
from assay.models.huggingface.body import Body
from assay.models.store import Opened
from assay.report.trees import drawn
from assay.run.attending import Scene
from assay.run.explanation import explain
from assay.run.listings import explainers
from assay.run.pooled import PooledText
from assay.run.stacks import StackText
from assay.run.texts import read
from assay.types import PooledModel, StackedModel

TEXTS, BYTES = 32, 256 << 20
"""Texts that are kept as they were read, and how much room they may take; the last one always stays."""

CURVED = "The answer is not linear in the attention of a stack, so the likeliest cannot be found with certainty."


class Workbench:
    """An opened model with the name that it was given by, and the options that it was read with."""

    def __init__(self, model: Opened, name: str, options: Sequence[str] = ()) -> None:
        self.model, self.name, self.options = model, name, tuple(options)
        self._texts: OrderedDict[tuple[str, str | None], PooledText | StackText] = OrderedDict()
        self._lock = threading.Lock()

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
                for name, (meaning, _) in explainers().items()
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
        if (refused := self.refusals[act.kind]) is not None:
            raise AssayError(refused)
        ready = self._ready(text, query)
        found = ready(act).json(ready.scene, act)
        return found | {"command": self._command("attend", text, query, written(act))}

    def _ready(self, text: str, query: str | None) -> PooledText | StackText:
        """The text as it was read, now or before."""
        with self._lock:
            key = text, query
            if key not in self._texts:
                self._texts[key] = self._read(text, query)
            self._texts.move_to_end(key)
            while len(self._texts) > 1 and (len(self._texts) > TEXTS or self._room > BYTES):
                self._texts.popitem(last=False)
            return self._texts[key]

    @property
    def _room(self) -> int:
        return sum(each.size for each in self._texts.values())

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


def written(act: Act) -> list[str]:
    """The act as options of the command line."""
    options = ["--act", act.kind]
    usual = Act(act.kind)
    if act.weights:
        options += ["--weights", ",".join(f"{item}={float(weight)!r}" for item, weight in act.weights.items())]
    if act.items:
        options += ["--items", ",".join(map(str, act.items))]
    names = ("target", "seed", "epsilon", "layer", "head", "place")
    for name in names:
        if (value := getattr(act, name)) != getattr(usual, name):
            options.append(f"--{'attention-head' if name == 'head' else name}={value}")
    return options


def _sentence(reason: str | None) -> str | None:
    """What is lacking, as a sentence of its own."""
    return None if reason is None else f"{reason[:1].upper()}{reason[1:].removesuffix('.')}."

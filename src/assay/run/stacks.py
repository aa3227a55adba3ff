"""Acts on a stack of self-attention: in one layer or in all, one head or all, for one attending word or for all."""

from __future__ import annotations

from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import AssayError
from assay.explainers.attention import AttentionXGradient
from assay.intervene.acts import Act
from assay.intervene.attention import Within, Without, uniform
from assay.intervene.bending import Attending, Bend
from assay.intervene.flipping import FlipSearch
from assay.intervene.layers import Given, Layers, Shuffled, Stack
from assay.intervene.stacked import StackSearch, limit
from assay.models import budget
from assay.models.erasure import capacity
from assay.models.hf_body import Body
from assay.run.attending import Done, Scene, apart, edited, percent, said_of, short
from assay.types import Batch, Edit, StackedModel, of_tokens

STEPS, FEWEST = 30, 6
"""Of the search for the furthest attention: as many as an audit takes, and in long texts fewer, for somebody waits."""

WHOLE = "The furthest attention is searched for in all layers at once; leave layer, head and attending word out."


class StackText:
    """One text, read once: what every head of every layer attends to, and what is answered."""

    def __init__(self, model: StackedModel, batch: Batch, scene: Scene) -> None:
        self.model, self.batch, self.scene = model, batch, scene
        closed = isinstance(model, Body) and model.traits.unedited is not None
        self.stack = _shown(model, batch) if closed else Stack.of(model, batch)
        with torch.no_grad():
            self.x = model.embed(batch)
        self.before = self.stack.probabilities[0].double().cpu()
        self.size = sum(layer.numel() * layer.itemsize for layer in self.stack.weights)

    def __call__(self, act: Act) -> Done:
        for name, count in (("layer", len(self.stack.weights)), ("head", self.stack.weights[0].shape[1])):
            if (number := getattr(act, name)) is not None and number >= count:
                raise AssayError(f"The model has the {name}s 0 to {count - 1}, and no {name} {number}.")
        self.scene.checked(() if act.place is None else (act.place,))
        done: Done = getattr(self, f"_{act.kind}")(act)
        return done

    @property
    def _budget(self) -> int:
        return budget.room(self.x.device, "attention search")

    def _observed(self, act: Act) -> Done:
        return self._done(act, self.stack.weights, self.before, "This is the attention as it is", jsd=0.0)

    def _set(self, act: Act) -> Done:
        chosen = self.scene.checked(act.weights)
        if not chosen:
            return self._done(act, self.stack.weights, self.before, "No weight is set", jsd=0.0)
        given = {item: act.weights[item] for item in chosen}
        amount = percent(given[chosen[0]]) if len(chosen) == 1 else "the given weights"
        seen = "" if self._all_see(act, chosen) else " wherever it may be attended to"
        said = f"{self.scene.named(chosen)} {_has(chosen)} {amount}{seen} and the rest is shared as before"
        return self._edited(act, Bend(self.stack.token_index, given), said, chosen)

    def _edit(self, act: Act) -> Done:
        assert act.edit is not None
        return self._edited(act, partial(edited, act.edit), said_of(act.edit))

    def _uniform(self, act: Act) -> Done:
        return self._edited(act, uniform, "Everything that may be attended to has the same weight")

    def _permute(self, act: Act) -> Done:
        said = f"The same weights stand in another order, drawn by the seed {act.seed}"
        return self._edited(act, Shuffled(act.seed), said)

    def _erase(self, act: Act) -> Done:
        chosen = self.scene.checked(act.items)
        return self._without(act, chosen)

    def _without(self, act: Act, chosen: tuple[int, ...], besides: str = "", **facts: object) -> Done:
        erased = torch.zeros(1, len(self.scene.items), dtype=torch.bool)
        erased[0, list(chosen)] = True
        said = f"{self.scene.named(chosen)} {'gets' if len(chosen) == 1 else 'get'} no attention" if chosen else ""
        edit = Without(self._columns(erased))
        return self._edited(act, edit, (said or "Nothing is erased") + besides, chosen, **facts)

    def _furthest(self, act: Act) -> Done:
        if (act.layer, act.head, act.place) != (None, None, None):
            raise AssayError(WHOLE)
        steps = max(FEWEST, min(STEPS, self._budget // 2 // self.stack.token_index.shape[1]))
        found = StackSearch(act.epsilon, steps)(self.model, self.batch, self.stack)
        most = float(limit(self.stack)[0])
        said = (
            f"With this attention in all layers the answer moves by at most {percent(act.epsilon)}, as a search found: "
            f"others may be further away, though none further than {most:.3g}"
        )
        with torch.no_grad():
            after = self.model(self.x, self.batch, Given(found.weights)).probabilities[0]
        facts = {"kind": "lower bound", "jsd": float(found.jsd[0]), "jsd_upper": most}
        return self._done(act, found.weights, after, said, **facts)

    def _flip(self, act: Act) -> Done:
        predicted = int(self.before.argmax())
        target = self.batch.labels.new_tensor([predicted])
        ranking = AttentionXGradient()(self.model, self.batch, target)[0].cpu()
        versions = max(16, self._budget // self.stack.token_index.shape[1])
        found = FlipSearch(lambda erased: self._answers(act, erased), predicted, versions)(ranking)
        if found is None:
            said = f"{self._where(act)}A search found no words whose loss of attention changes the answer"
            return self._done(act, self.stack.weights, self.before, said, jsd=0.0, kind="search")
        enough = ", and that is enough" if len(found) == 1 else ", as a search found (fewer may be enough)"
        return self._without(act, found, enough, kind="exact" if len(found) == 1 else "search")

    @torch.no_grad()
    def _answers(self, act: Act, erased: Bool[Tensor, "V N"]) -> Float[Tensor, "V C"]:
        """What is answered without attention to some words, for several choices of them."""
        step = max(1, capacity(self.model, self.x.device) // max(1, self.stack.token_index.shape[1]))
        parts = []
        for start in range(0, len(erased), step):
            some = erased[start : start + step]
            rows = torch.zeros(len(some), dtype=torch.long, device=self.x.device)
            edit = self._placed(act, Without(self._columns(some)), len(some))
            parts.append(self.model(self.x[rows], self.batch[rows], edit).probabilities.double().cpu())
        return torch.cat(parts)

    def _columns(self, erased: Bool[Tensor, "V N"]) -> Bool[Tensor, "V S"]:
        """The places of the words that are erased."""
        places = self.stack.token_index.expand(len(erased), -1)
        return erased.to(places.device).gather(1, places.clamp(min=0)) & (places >= 0)

    def _placed(self, act: Act, edit: Edit, versions: int = 1) -> Edit:
        """The edit in the layer, in the head and for the word that the act names."""
        if act.place is not None:
            edit = Attending(edit, (self.stack.token_index == act.place).expand(versions, -1))
        only = [None if number is None else (number,) for number in (act.layer, act.head)]
        return edit if only == [None, None] else Within(edit, *only)

    @torch.no_grad()
    def _edited(self, act: Act, edit: Edit, said: str, chosen: tuple[int, ...] = (), **facts: object) -> Done:
        output = self.model(self.x, self.batch, self._placed(act, edit))
        told = f"{self._where(act)}{said}{self._unread(act)}"
        return self._done(act, output.attention, output.probabilities[0], told, chosen=chosen, **facts)

    def _done(self, act: Act, weights: Layers, after: Tensor, said: str, **facts: object) -> Done:
        (observed, outside), (changed, then) = (self._seen(act, each) for each in (self.stack.weights, weights))
        known: dict[str, object] = {"jsd": self._apart(act, weights)} | facts
        elsewhere = outside, then
        after = after.double().cpu()
        return Done(observed, changed, self.before, after, said=said, elsewhere=elsewhere, **known)  # type: ignore[arg-type]

    def _rows(self, act: Act) -> list[tuple[int, Bool[Tensor, "H S"]]]:
        """The layers, heads and attending places that the act is about.

        Without a word, the places are those that the answer can depend on.
        """
        numbers = range(len(self.stack.weights)) if act.layer is None else [act.layer]
        heads = torch.arange(self.stack.weights[0].shape[1], device=self.x.device)
        named = torch.ones_like(heads, dtype=torch.bool) if act.head is None else heads == act.head
        places = self.stack.token_index[0] == act.place
        return [
            (number, named[:, None] & (self.stack.counted[number][0] if act.place is None else places))
            for number in numbers
        ]

    def _seen(self, act: Act, weights: Layers) -> tuple[list[float], float]:
        """The weight of each word, the mean over what the act is about, and that of what is no word."""
        row = torch.cat([weights[number][0][which].double() for number, which in self._rows(act)]).mean(0)
        words = of_tokens(row[None], self.stack.token_index, len(self.scene.items))[0]
        return words.tolist(), max(0.0, float(row.sum() - words.sum()))

    def _apart(self, act: Act, weights: Layers) -> float:
        """The mean divergence over what the act is about; over everything, it is that of the audits."""
        pairs = [(self.stack.weights[number][0][which], weights[number][0][which]) for number, which in self._rows(act)]
        return float(torch.cat([apart(old.double(), new.double()) for old, new in pairs]).mean())

    def _all_see(self, act: Act, chosen: tuple[int, ...]) -> bool:
        """Whether all that the act is about may attend to the chosen words."""
        columns = torch.isin(self.stack.token_index[0], self.stack.token_index.new_tensor(chosen))
        return all(
            bool(self.stack.allowed[number][0][which.any(0)][:, columns].all()) for number, which in self._rows(act)
        )

    def _where(self, act: Act) -> str:
        """Where the attention is changed, if it is not everywhere."""
        parts = [
            f"{name} {number}" for name, number in (("layer", act.layer), ("head", act.head)) if number is not None
        ]
        if act.place is not None:
            parts.append(f"what “{short(self.scene.items[act.place])}” attends to")
        return f"In {', '.join(parts)}: " if parts else ""

    def _unread(self, act: Act) -> str:
        """Said where a change cannot matter: the answer does not read what that word attends to in the last layer."""
        last = len(self.stack.weights) - 1
        if act.place is None or act.layer != last:
            return ""
        read = bool((self.stack.counted[last][0] & (self.stack.token_index[0] == act.place)).any())
        return "" if read else " (the answer does not read this word from the last layer)"


@torch.no_grad()
def _shown(model: StackedModel, batch: Batch) -> Stack:
    """The attention of one text in a model that shows it but takes no edits."""
    output = model.layered(model.embed(batch), batch)
    *layers, reading = output.attention
    every = torch.ones_like(layers[0][:, 0], dtype=torch.bool)
    counted = [every[:, 0]] * (len(layers) - 1) + [reading > 0]
    return Stack(layers, [every] * len(layers), counted, reading, model.token_index(batch), output.probabilities)


def _has(chosen: tuple[int, ...]) -> str:
    return "has" if len(chosen) == 1 else "have"

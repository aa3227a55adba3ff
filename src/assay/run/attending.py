"""Edits of the attention to one text: of one attention that pools it, and of a stack of layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.audits.cases import Case
from assay.data.examples import Span
from assay.errors import AssayError, unknown
from assay.explainers.attention import AttentionXGradient
from assay.intervene.adversary import furthest
from assay.intervene.adversary_problem import LOG2, jsd
from assay.intervene.edits import Act, Attending, Bend, Permute, Within, Without, uniform
from assay.intervene.pooled_attention import FlipSearch, Likeliest, Pooling, likeliest, smallest
from assay.intervene.stack_attention import Given, Layers, Shuffled, Stack, StackSearch, limit
from assay.metrics.information import tvd
from assay.models import budget
from assay.models.erasure import capacity
from assay.models.hf_body import Body
from assay.types import Batch, Edit, PooledModel, StackedModel, of_tokens

FEW = 3  # items that a sentence names one by one


@dataclass(frozen=True)
class Scene:
    """A text in words and in the items that are attended to."""

    text: str
    spans: tuple[Span, ...]  # of each word
    items: tuple[str, ...]  # what each stands for in the text
    item_of: tuple[int, ...]  # of each word
    unit: str  # "word" or "sentence"
    classes: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        return [self.text[start:end] for start, end in self.spans]

    def checked(self, items: Iterable[int]) -> tuple[int, ...]:
        """The items, if all are there."""
        chosen = tuple(sorted(set(items)))
        for item in chosen:
            if not 0 <= item < len(self.items):
                raise AssayError(
                    f"The text has the {self.unit}s 0 to {len(self.items) - 1}, and no {self.unit} {item}; "
                    "they are counted from 0."
                )
        return chosen

    def named(self, items: Sequence[int]) -> str:
        """A few words by name, or how many items there are."""
        if len(items) > FEW or self.unit == "sentence":
            return self.counted(len(items))
        *before, last = [f"“{short(self.items[item])}”" for item in items]
        return f"{', '.join(before)} and {last}" if before else last

    def counted(self, count: int) -> str:
        return f"{count} {self.unit}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class Done:
    """Weights and probabilities before and after an act, how far apart they are, and what was done, in words."""

    observed: list[float]
    weights: list[float]
    before: Tensor
    after: Tensor
    jsd: float
    said: str
    kind: str = "exact"
    jsd_upper: float | None = None
    chosen: tuple[int, ...] = ()
    elsewhere: tuple[float, float] = (0.0, 0.0)
    more: dict[str, Any] = field(default_factory=dict)

    def json(self, scene: Scene, act: Act) -> dict[str, Any]:
        """All of it as plain values."""
        old, new = (scene.classes[int(each.argmax())] for each in (self.before, self.after))
        return {
            "words": scene.words,
            "spans": list(scene.spans),
            "items": list(scene.items),
            "item_of": list(scene.item_of),
            "observed": self.observed,
            "weights": self.weights,
            "elsewhere": self.elsewhere[0],
            "elsewhere_after": self.elsewhere[1],
            "before": dict(zip(scene.classes, self.before.tolist(), strict=True)),
            "after": dict(zip(scene.classes, self.after.tolist(), strict=True)),
            "predicted_before": old,
            "predicted_after": new,
            "tvd": float(tvd(self.after, self.before)),
            "jsd": self.jsd,
            "jsd_upper": self.jsd_upper,
            "kind": self.kind,
            "chosen": list(self.chosen),
            "note": f"{self.said}{self._found(old, new, act)}.",
            "act": act.kind,
            "layer": act.layer,
            "head": act.head,
            "place": act.place,
            **self.more,
        }

    def _found(self, old: str, new: str, act: Act) -> str:
        if act.kind == "observed":
            return ""
        return f"; the answer stays {old}" if old == new else f"; the answer changes from {old} to {new}"


def apart(old: Float[Tensor, "R N"], new: Float[Tensor, "R N"]) -> Float[Tensor, " R"]:
    """The divergence of each distribution; where nothing is attended to any more, it is as large as can be."""
    return jsd(old, new).where(new.sum(-1) > 0, LOG2)


def short(label: str, longest: int = 24) -> str:
    """A label that fits into a sentence."""
    return label if len(label) <= longest else f"{label[:longest]}…"


def percent(share: float) -> str:
    return f"{share:.1%}".replace(".0%", "%")


class EditedText:
    """One text, read once, and its attention under acts: what they have in common in one attention and in a stack."""

    scene: Scene
    before: Tensor  # the probabilities under the attention as it is
    size: int  # bytes
    evenly: str  # said of the act "uniform"
    shuffled: Callable[[int], Edit]
    _check: Callable[[Act], None]  # refuses what the act cannot be about
    _edited: Callable[..., Done]  # the act, its edit, what is said of it, the items that it is about
    _unchanged: Callable[..., Done]  # the act, and what is said
    _erasing: Callable[[tuple[int, ...]], Edit]

    def __call__(self, act: Act) -> Done:
        self._check(act)
        done: Done = getattr(self, f"_{act.kind}")(act)
        return done

    def _observed(self, act: Act) -> Done:
        return self._unchanged(act, "This is the attention as it is")

    def _edit(self, act: Act) -> Done:
        edit = act.edit
        assert edit is not None
        said = f"The attention is edited by {getattr(edit, '__name__', type(edit).__name__)}"
        return self._edited(act, partial(_of_same_shape, edit), said)

    def _uniform(self, act: Act) -> Done:
        return self._edited(act, uniform, self.evenly)

    def _permute(self, act: Act) -> Done:
        said = f"The same weights stand in another order, drawn by the seed {act.seed}"
        return self._edited(act, self.shuffled(act.seed), said)

    def _erase(self, act: Act) -> Done:
        return self._without(act, self.scene.checked(act.items))

    def _without(self, act: Act, chosen: tuple[int, ...], besides: str = "", **facts: object) -> Done:
        said = f"{self.scene.named(chosen)} {_verb(chosen, 'gets')} no attention" if chosen else "Nothing is erased"
        return self._edited(act, self._erasing(chosen), said + besides, chosen, **facts)


def _of_same_shape(edit: Edit, weights: Float[Tensor, "R *Q N"], mask: Bool[Tensor, "R N"]) -> Float[Tensor, "R *Q N"]:
    """The weights that an edit of a caller gives; others of them than there are, or none, are refused."""
    found = edit(weights, mask)
    if not isinstance(found, Tensor) or found.shape != weights.shape:
        given = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise AssayError(f"An edit gives as many weights as there are, here {tuple(weights.shape)}, not {given}.")
    return found


def _verb(subjects: Collection[int], one: str) -> str:
    """The verb that goes with so many subjects."""
    return one if len(subjects) == 1 else {"gets": "get", "has": "have"}[one]


# One attention that pools a text: every answer is a weighted mean of what its items say alone.


MOST = 24
"""Of more classes only the one that is asked about is made as likely as can be."""


class PooledText(EditedText):
    """What each item of a text says alone, and how much it is attended to, in double precision."""

    shuffled = Permute

    def __init__(self, model: PooledModel, batch: Batch, scene: Scene) -> None:
        case = Case(model, batch, {})
        observed = case.weights / case.weights.sum(-1, keepdim=True)  # rounded weights do not quite add up to 1
        self.scene, self.evenly = scene, f"Every {scene.unit} has the same weight"
        self.pooling = Pooling.of(case.values.cpu(), observed.cpu(), case.items.cpu(), case.empty.cpu())
        self.before = self.pooling.logits.softmax(-1)[0]
        self.size = self.pooling.values.numel() * 8

    def _check(self, act: Act) -> None:
        if (act.layer, act.head, act.place) != (None, None, None):
            raise AssayError(
                f"One attention pools the {self.scene.unit}s of this model; leave layer, head and attending word out."
            )

    @property
    def weights(self) -> Float[Tensor, "1 N"]:
        return self.pooling.weights

    def _done(self, weights: Float[Tensor, "1 N"], said: str, **more: Any) -> Done:
        after = self.pooling.under(weights).softmax(-1)[0]
        facts: dict[str, Any] = {"jsd": float(apart(self.weights, weights))} | more
        return Done(self.weights[0].tolist(), weights[0].tolist(), self.before, after, said=said, **facts)

    def _edited(self, act: Act, edit: Edit, said: str, chosen: tuple[int, ...] = (), **facts: object) -> Done:
        weights = edit(self.weights, self.pooling.mask)
        nothing = isinstance(edit, Without) and not bool(weights.any())
        return self._done(weights, said + ", and nothing is left to be read" * nothing, chosen=chosen, **facts)

    def _unchanged(self, act: Act, said: str, **facts: object) -> Done:
        return self._done(self.weights, said, jsd=0.0, **facts)

    def _erasing(self, chosen: tuple[int, ...]) -> Edit:
        return Without(_marked(self.weights.shape[1], chosen))

    def _set(self, act: Act) -> Done:
        chosen = self.scene.checked(act.weights)
        given = {item: act.weights[item] for item in chosen}
        edit = Bend(torch.arange(self.weights.shape[1])[None], given)
        return self._edited(act, edit, self._shared(given), chosen)

    def _shared(self, given: dict[int, float]) -> str:
        """What became of the weights that are given, and of the others."""
        if not given:
            return "No weight is set"
        named, total = self.scene.named(tuple(given)), sum(given.values())
        if len(given) == len(self.scene.items):
            if total <= 0:
                return "All weights are 0, so the decoder reads nothing"
            whole = abs(total - 1) < 1e-9
            return "All weights are set" + ("" if whole else f", and divided by their sum, {total:.3g}")
        left = self.weights[0].clone()
        left[list(given)] = 0
        others = "share the rest as before" if float(left.sum()) > 0 else "had no weight and share the rest evenly"
        amount = "the given weights" if len(given) > 1 else percent(total)
        return f"{named} {_verb(given, 'has')} {amount} of the attention and the others {others}"

    def _furthest(self, act: Act) -> Done:
        found = furthest(self.pooling.values, self.weights, self.pooling.mask, act.epsilon, 1)
        far, upper = float(found.jsd[0, 0]), float(found.upper[0])
        within = f"moves the answer by at most {percent(act.epsilon)}"
        said = {
            "exact": f"Of all attention that {within}, this is the furthest away",
            "bracket": f"This attention {within}, and none that does is further away than {upper:.3g}",
            "lower bound": f"A search found this attention, which {within}; none is further away than {upper:.3g}",
        }[found.kind]
        said = said if far > 0 else f"A search found no other attention that {within}"
        said = said if far > 0 or upper > 0 else f"There is no other attention that {within}"
        return self._done(found.weights[:, 0], said, jsd=far, jsd_upper=upper, kind=found.kind)

    def _flip(self, act: Act) -> Done:
        best = smallest(self.pooling)
        if not bool(best.flipped[0]):
            return self._unchanged(act, f"Whichever {self.scene.unit}s get no attention")
        chosen = tuple(best.erased[0].nonzero()[:, 0].tolist())
        enough = "fewer would not do" if len(chosen) > 1 else "that is enough"
        return self._without(act, chosen, f", and {enough}")

    def _likeliest(self, act: Act) -> Done:
        values, classes = self.pooling.values[0].numpy(), self.scene.classes
        if act.target is not None and act.target not in classes:
            raise unknown("class", act.target, classes)
        asked = None if act.target is None else classes.index(act.target)
        wanted = range(len(classes)) if len(classes) <= MOST else [self._rival() if asked is None else asked]
        found = {number: likeliest(values, number) for number in wanted}
        target = asked if asked is not None else max(self._others(found), key=lambda each: found[each].probability)
        best = found[target]
        exact = len(classes) == 2
        within = "" if exact else f" (to within {max(best.upper - best.probability, 1e-9):.0e})"
        said = f"Attention alone can make {classes[target]} {percent(best.probability)} likely and no more{within}"
        more = {
            "target": classes[target],
            "reach": {classes[number]: each.probability for number, each in found.items()},
            "reach_upper": {classes[number]: each.upper for number, each in found.items()},
        }
        return self._done(torch.from_numpy(best.weights)[None], said, kind="exact" if exact else "bracket", more=more)

    def _others(self, found: dict[int, Likeliest]) -> list[int]:
        """The classes that are not the answer as it is, where there are any."""
        predicted = int(self.pooling.predicted[0])
        return [number for number in found if number != predicted] or [predicted]

    def _rival(self) -> int:
        """The class beside the answer that some item alone makes likeliest."""
        alone = self.pooling.values[0].softmax(-1).amax(0)
        alone[int(self.pooling.predicted[0])] = -1
        return int(alone.argmax())


def _marked(size: int, chosen: tuple[int, ...]) -> Bool[Tensor, "1 N"]:
    """Some of so many items."""
    return torch.isin(torch.arange(size), torch.tensor(chosen, dtype=torch.long))[None]


# A stack of self-attention: in one layer or in all, one head or all, for one attending word or for all.


STEPS, FEWEST = 30, 6
"""Of the search for the furthest attention: as many as an audit takes, and in long texts fewer, for somebody waits."""

WHOLE = "The furthest attention is searched for in all layers at once; leave layer, head and attending word out."


class StackText(EditedText):
    """What every head of every layer attends to in a text, and what is answered."""

    evenly = "Everything that may be attended to has the same weight"
    shuffled = Shuffled

    def __init__(self, model: StackedModel, batch: Batch, scene: Scene) -> None:
        self.model, self.batch, self.scene = model, batch, scene
        closed = isinstance(model, Body) and model.traits.unedited is not None
        self.stack = _shown(model, batch) if closed else Stack.of(model, batch)
        with torch.no_grad():
            self.x = model.embed(batch)
        self.before = self.stack.probabilities[0].double().cpu()
        self.size = sum(layer.numel() * layer.itemsize for layer in self.stack.weights)

    def _check(self, act: Act) -> None:
        for name, count in (("layer", len(self.stack.weights)), ("head", self.stack.weights[0].shape[1])):
            if (number := getattr(act, name)) is not None and number >= count:
                raise AssayError(f"The model has the {name}s 0 to {count - 1}, and no {name} {number}.")
        self.scene.checked(() if act.place is None else (act.place,))

    @property
    def _words(self) -> int:
        """Positions of a text, as many as a version of it takes."""
        return max(1, self.stack.token_index.shape[1])

    @property
    def _budget(self) -> int:
        return budget.room(self.x.device, "attention search")

    def _unchanged(self, act: Act, said: str, **facts: object) -> Done:
        return self._done(act, self.stack.weights, self.before, said, jsd=0.0, **facts)

    def _erasing(self, chosen: tuple[int, ...]) -> Edit:
        return Without(self._columns(_marked(len(self.scene.items), chosen)))

    def _set(self, act: Act) -> Done:
        chosen = self.scene.checked(act.weights)
        if not chosen:
            return self._unchanged(act, "No weight is set")
        given = {item: act.weights[item] for item in chosen}
        amount = percent(given[chosen[0]]) if len(chosen) == 1 else "the given weights"
        seen = "" if self._all_see(act, chosen) else " wherever it may be attended to"
        said = f"{self.scene.named(chosen)} {_verb(chosen, 'has')} {amount}{seen} and the rest is shared as before"
        return self._edited(act, Bend(self.stack.token_index, given), said, chosen)

    def _furthest(self, act: Act) -> Done:
        if (act.layer, act.head, act.place) != (None, None, None):
            raise AssayError(WHOLE)
        steps = max(FEWEST, min(STEPS, self._budget // 2 // self._words))
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
        versions = max(16, self._budget // self._words)
        found = FlipSearch(lambda erased: self._answers(act, erased), predicted, versions)(ranking)
        if found is None:
            said = f"{self._where(act)}A search found no words whose loss of attention changes the answer"
            return self._unchanged(act, said, kind="search")
        enough = ", and that is enough" if len(found) == 1 else ", as a search found (fewer may be enough)"
        return self._without(act, found, enough, kind="exact" if len(found) == 1 else "search")

    @torch.no_grad()
    def _answers(self, act: Act, erased: Bool[Tensor, "V N"]) -> Float[Tensor, "V C"]:
        """What is answered without attention to some words, for several choices of them."""
        step = max(1, capacity(self.model, self.x.device) // self._words)
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

"""Acts on the attention that pools a text: every answer is a weighted mean of what its items say alone."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from assay.audits.cases import Case
from assay.errors import AssayError, unknown
from assay.intervene.adversary import furthest
from assay.intervene.edits import Act, Bend, Permute, uniform
from assay.intervene.pooled_attention import Likeliest, Pooling, likeliest, smallest
from assay.run.attending import Done, Scene, apart, edited, percent, said_of
from assay.types import Batch, PooledModel

MOST = 24
"""Of more classes only the one that is asked about is made as likely as can be."""


class PooledText:
    """One text, read once: what each item says alone, and how much it is attended to, in double precision."""

    def __init__(self, model: PooledModel, batch: Batch, scene: Scene) -> None:
        case = Case(model, batch, {})
        observed = case.weights / case.weights.sum(-1, keepdim=True)  # rounded weights do not quite add up to 1
        self.scene = scene
        self.pooling = Pooling.of(case.values.cpu(), observed.cpu(), case.items.cpu(), case.empty.cpu())
        self.before = self.pooling.logits.softmax(-1)[0]
        self.size = self.pooling.values.numel() * 8

    def __call__(self, act: Act) -> Done:
        if (act.layer, act.head, act.place) != (None, None, None):
            raise AssayError(
                f"One attention pools the {self.scene.unit}s of this model; leave layer, head and attending word out."
            )
        done: Done = getattr(self, f"_{act.kind}")(act)
        return done

    @property
    def weights(self) -> Float[Tensor, "1 N"]:
        return self.pooling.weights

    def _done(self, weights: Float[Tensor, "1 N"], said: str, **more: object) -> Done:
        after = self.pooling.under(weights).softmax(-1)[0]
        facts: dict[str, object] = {"jsd": float(apart(self.weights, weights))} | more
        return Done(self.weights[0].tolist(), weights[0].tolist(), self.before, after, said=said, **facts)  # type: ignore[arg-type]

    def _observed(self, act: Act) -> Done:
        return self._done(self.weights, "This is the attention as it is", jsd=0.0)

    def _set(self, act: Act) -> Done:
        chosen = self.scene.checked(act.weights)
        given = {item: act.weights[item] for item in chosen}
        owners = torch.arange(self.weights.shape[1])[None]
        weights = Bend(owners, given)(self.weights, self.pooling.mask)
        return self._done(weights, self._shared(given), chosen=chosen)

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
        return f"{named} {'has' if len(given) == 1 else 'have'} {amount} of the attention and the others {others}"

    def _edit(self, act: Act) -> Done:
        assert act.edit is not None
        return self._done(edited(act.edit, self.weights, self.pooling.mask), said_of(act.edit))

    def _uniform(self, act: Act) -> Done:
        return self._done(uniform(self.weights, self.pooling.mask), f"Every {self.scene.unit} has the same weight")

    def _permute(self, act: Act) -> Done:
        weights = Permute(act.seed)(self.weights, self.pooling.mask)
        return self._done(weights, f"The same weights stand in another order, drawn by the seed {act.seed}")

    def _erase(self, act: Act) -> Done:
        chosen = self.scene.checked(act.items)
        return self._without(chosen, "" if chosen else "Nothing is erased")

    def _without(self, chosen: tuple[int, ...], said: str = "", besides: str = "") -> Done:
        left = self.weights.clone()
        left[:, list(chosen)] = 0
        total = left.sum(-1, keepdim=True)
        said = said or f"{self.scene.named(chosen)} {'gets' if len(chosen) == 1 else 'get'} no attention"
        nothing = "" if float(total) > 0 else ", and nothing is left to be read"
        return self._done(left / total.where(total > 0, 1.0), said + besides + nothing, chosen=chosen)

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
            return self._done(self.weights, f"Whichever {self.scene.unit}s get no attention", jsd=0.0)
        chosen = tuple(best.erased[0].nonzero()[:, 0].tolist())
        enough = "fewer would not do" if len(chosen) > 1 else "that is enough"
        return self._without(chosen, besides=f", and {enough}")

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

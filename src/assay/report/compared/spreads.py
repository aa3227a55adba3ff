"""How concentrated importance is in one model, and how that changes as attention gets sparser."""

from __future__ import annotations

from dataclasses import dataclass

from assay.records import Finding, Record
from assay.report.compared.found import shared, short, spread, strength, subjects
from assay.report.compared.limits import MOSTLY
from assay.report.items import SENTENCES, items
from assay.writing import count, listed, number, percent

IMPORTANCES = {
    "attention": "attention",
    "gradient": "words, by gradient",
    "leave_one_out": "words, by deletion",
    "state_gradient": "states, by gradient",
    "state_leave_one_out": "states, by deletion",
    "states": "words for one state",
}
"""What the entropies of `dispersion` are of."""

TRENDS = {
    "trend_entropy": "the entropy of the importance of words",
    "trend_input": "agreement of attention with the importance of words",
    "trend_state": "agreement of attention with the importance of states",
}
"""What is followed along λ or α: a positive τ means that it rises as attention gets sparser."""


def concentrated(record: Record) -> str | None:
    """How much of a state comes from its own word, how spread the rest is, and whom attention agrees with."""
    entropy, own = subjects(record, "dispersion", "entropy"), subjects(record, "dispersion", "own").get("states")
    if "states" not in entropy and own is None:
        return None
    told, words = [], "words" if items(record) is SENTENCES else "word"
    if own is not None:
        told.append(f"of what moves a state {shared(own)} comes from its own {words}")
    if "states" in entropy:
        share = "" if told else "what moves a state has "
        told.append(f"{share}a normalised entropy of {spread(entropy['states'])} over the words of the text")
    joined = ", with ".join(told) if len(told) == 2 else told[0]
    n = (own or entropy["states"]).n
    return f"{joined[0].upper()}{joined[1:]} (n = {count(n)}): {_own(own, entropy.get('states'))}.{_agreeing(record)}"


def _own(own: Finding | None, entropy: Finding | None) -> str:
    """What these numbers mean for a weight on a state."""
    if own is not None and own.low > MOSTLY:
        return "a state stands mostly for its word, so that a weight on it is one on the word"
    if own is not None and own.high < MOSTLY:
        return "a state stands for much more than its word, so that a weight on it is not one on the word alone"
    if entropy is not None and own is None:
        return "1 is all words alike, 0 a single one"
    return "about half of it is other words"


def _agreeing(record: Record) -> str:
    tau = subjects(record, "dispersion", "tau")
    pairs = {"states": ("attention~state_gradient", "attention~state_leave_one_out")}
    pairs["words"] = ("attention~gradient", "attention~leave_one_out")
    ways = ("by gradient", "by deletion")
    told = []
    for what, names in pairs.items():
        both = [f"{spread(tau[name])} {way}" for name, way in zip(names, ways, strict=True) if name in tau]
        told += [f"with the importance of {what} at τ {' and '.join(both)}"] if both else []
    return f" Attention agrees {', '.join(told)}." if told else ""


@dataclass(frozen=True)
class Sweep:
    """The projections that a number sets, the least sparse first, with that number; what it is, and of what."""

    symbol: str
    family: str
    strengths: dict[str, float]


SPARSEGEN, ENTMAX = ("λ", "sparsegen", {"sparsemax": 0.0}), ("α", "entmax", {"softmax": 1.0, "sparsemax": 2.0})
"""Both families with the projections that have another name."""


def sweep(record: Record) -> Sweep:
    """Over what the record's sweep goes: λ of sparsegen, for which softmax stands apart, or α of entmax."""
    names = subjects(record, "sparsity", "right")
    symbol, family, known = SPARSEGEN if any(name.startswith("sparsegen(") for name in names) else ENTMAX
    found = {name: known.get(name, strength(name) if name.startswith(family) else None) for name in names}
    ordered = sorted((value, name) for name, value in found.items() if value is not None)
    # a strength under two names counts once
    return Sweep(symbol, family, {name: value for value, name in {pair[0]: pair for pair in ordered}.values()})


def trends(record: Record) -> str | None:
    """What rises and what falls as attention gets sparser, and what that does to the accuracy."""
    swept, right = sweep(record), subjects(record, "sparsity", "right")
    values = list(swept.strengths.values())
    if len(values) < 2:
        return None
    known = [clause for measure in TRENDS if (clause := _trend(record, measure, swept.symbol))]
    ends = f"{swept.symbol} from {short(values[0])} to {short(values[-1])}"
    opening = f"As attention gets sparser ({swept.family}, {ends})"
    rates = [right[name].mean for name in swept.strengths]
    apart = "softmax" in right and "softmax" not in swept.strengths
    softmax = f"; with softmax it is {percent(right['softmax'].mean)}" if apart else ""
    low, high = percent(min(rates)), percent(max(rates))
    accuracy = f"accuracy {f'is {low}' if low == high else f'lies between {low} and {high}'}{softmax}"
    ending = f"{accuracy} (n = {count(right[next(iter(swept.strengths))].n)}, one model for each {swept.symbol})."
    return f"{opening}, {listed(known)}. A{ending[1:]}" if known else f"{opening}, {ending}"


def _trend(record: Record, measure: str, symbol: str) -> str:
    """Whether something rises or falls, or neither for sure, as attention gets sparser, text by text."""
    found = next(iter(subjects(record, "sparsity", measure).values()), None)
    if found is None:
        return ""
    moves = "rises" if found.low > 0 else "falls" if found.high < 0 else "neither clearly rises nor falls"
    return f"{TRENDS[measure]} {moves} (τ with {symbol} {number(found.mean, 2)}, 95 % interval {_ends(found)})"


def _ends(found: Finding) -> str:
    return f"{number(found.low, 2)} to {number(found.high, 2)}"

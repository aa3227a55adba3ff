"""From results to the page: one table for each test."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from assay.records import Finding
from studies.pages import made_from
from studies.results import Result, finding

TITLES = {"sst": "SST", "imdb": "IMDB", "newsgroups": "20News", "agnews": "AG News"}
ATTENTIONS = ("learnt", "uniform", "imported", "adversarial")
Results = Mapping[str, Result]


def page(results: Results) -> str:
    """All tables."""
    parts = [
        made_from("studies.wiegreffe_pinter", list(results.values())),
        "### 1. Attention frozen to 1/N",
        uniform(results),
        "### 2. Other seeds: the null",
        seeds(results),
        "### 3. Networks that read each word alone, under four kinds of attention",
        guides(results),
        "### 4. Adversaries that are trained",
        adversaries(results),
    ]
    return "\n\n".join(parts) + "\n"


def uniform(results: Results) -> str:
    """Test 1: how often the model is right, and one with even attention."""
    head = (
        "corpus",
        "texts",
        "learnt",
        "uniform",
        "gain of learning",
        "p",
        "F1 learnt",
        "F1 uniform",
        "TVD",
        "same decision",
    )
    rows = []
    for name, result in results.items():
        one, other, gain = (
            finding(result, "frozen_uniform", subject, measure)
            for subject, measure in (("learnt", "right"), ("uniform", "right"), ("learnt", "right_gain"))
        )
        far, same = (finding(result, "frozen_uniform", "uniform", measure) for measure in ("tvd", "same"))
        count = f"{result['corpus']['audited']:,}"
        f1 = [f"{result['f1'][each]:.3f}" for each in ("learnt", "uniform")]
        rights = (*map(_percent, (one, other)), _points(gain), _p(gain))
        rows.append((TITLES[name], count, *rights, *f1, _mean(far), _mean(same)))
    return (
        "Right in % of the test texts, with the 95 % interval of the gain in points; F1 of the second class:\n\n"
        + _lines(head, rows)
    )


def seeds(results: Results) -> str:
    """Test 2: how far models of other seeds are from the model."""
    head = ("corpus", "seeds", "JSD", "least and most", "TVD", "least and most", "same decision", "right, %")
    rows = []
    for name, result in results.items():
        every = cloud(result)
        jsd, tvd, same, right = (finding(result, "seed_variance", "seeds", each) for each in MEASURES)
        spread = [f"{min(each):.3f}–{max(each):.3f}" for each in zip(*every, strict=True)]
        middle = (_mean(jsd), spread[0], _mean(tvd), spread[1])
        rows.append((TITLES[name], str(len(every)), *middle, _mean(same), _percent(right)))
    return (
        "Distances from the audited model, means over texts and seeds; least and most are means of one seed:\n\n"
        + _lines(head, rows)
    )


MEASURES = ("jsd", "tvd", "same", "right")


def cloud(result: Result) -> list[tuple[float, float]]:
    """The JSD and the TVD of each seed."""
    return [(jsd, tvd) for _, jsd, tvd in _places(result, r"seed \d+", "seed_variance")]


def curve(result: Result) -> list[tuple[float, float, float]]:
    """λ, the JSD and the TVD of each trained adversary, by λ."""
    return sorted((float(name.removeprefix("λ=")), jsd, tvd) for name, jsd, tvd in _places(result, r"λ=.+"))


def _places(result: Result, wanted: str, audit: str = "trained_adversary") -> list[tuple[str, float, float]]:
    subjects = dict.fromkeys(row["subject"] for row in result["findings"] if row["audit"] == audit)
    found = []
    for subject in subjects:
        if re.fullmatch(wanted, subject):
            jsd, tvd = (finding(result, audit, subject, measure) for measure in ("jsd", "tvd"))
            assert jsd is not None and tvd is not None
            found.append((subject, jsd.mean, tvd.mean))
    return found


def guides(results: Results) -> str:
    """Test 3: how often a network is right that sees no context."""
    gains = [f"{name} − learnt" for name in ATTENTIONS[1:]]
    rows = []
    for name, result in results.items():
        rights = [_percent(finding(result, "guide", each, "right")) for each in ATTENTIONS]
        more = [finding(result, "guide", each, "right_gain") for each in ATTENTIONS[1:]]
        rows.append((TITLES[name], *rights, *(f"{_points(each)}, p {_p(each)}" for each in more)))
    head = ("corpus", *ATTENTIONS, *gains)
    return "Right in %, and gains in points:\n\n" + _lines(head, rows)


def adversaries(results: Results) -> str:
    """Test 4: how far each adversary got, and what it gave up."""
    head = ("corpus", "λ", "JSD", "TVD", "same decision", "right, %")
    rows = []
    for name, result in results.items():
        for strength, _, _ in curve(result):
            found = [finding(result, "trained_adversary", f"λ={strength:g}", measure) for measure in MEASURES]
            rows.append(
                (TITLES[name], f"{strength:g}", *map(_interval, found[:2]), _mean(found[2]), _percent(found[3]))
            )
    return "Distances from the audited model, with 95 % intervals over texts:\n\n" + _lines(head, rows)


def _percent(found: Finding | None) -> str:
    return "–" if found is None else f"{100 * found.mean:.1f}"


def _points(found: Finding | None) -> str:
    if found is None:
        return "–"
    return f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def _p(found: Finding | None) -> str:
    if found is None or found.p_value is None:
        return "–"
    return f"{found.p_value:.2g}" if found.p_value else "below 1e-6"  # results are kept to six digits


def _mean(found: Finding | None) -> str:
    return "–" if found is None else f"{found.mean:.3f}"


def _interval(found: Finding | None) -> str:
    return "–" if found is None else f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))

"""From results to the page: accuracy, the paper's two tables, and every model of the sweep."""

from __future__ import annotations

from collections.abc import Mapping

from scipy.stats import kendalltau, spearmanr

from studies.meister.published import STATE_ENTROPY, TREND
from studies.pages import made_from
from studies.results import Result, finding

CORPORA = {"imdb": "IMDB", "newsgroups": "20News", "sst": "SST"}
ENCODERS = {"lstm": "BiLSTM (additive)", "transformer": "Transformer (dot)"}
STRENGTHS = (-100.0, -10.0, -5.0, -2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 0.9)
Results = Mapping[tuple[str, str], Result]
AUDIT = "sparsity"


def subject(strength: float) -> str:
    """The name of the projection of sparsegen's λ."""
    return "sparsemax" if strength == 0 else f"sparsegen({strength:g})"


def mean(result: Result, measure: str, projection: str) -> float | None:
    found = finding(result, AUDIT, projection, measure)
    return None if found is None else found.mean


def page(results: Results) -> str:
    """All tables."""
    parts = [made_from("studies.meister", list(results.values())), states(results), trends(results)]
    return "\n\n".join([*parts, *(sweep(name, encoder, results) for name, encoder in results)]) + "\n"


def states(results: Results) -> str:
    """Table 1 beside ours."""
    head = "| model | " + " | ".join(f"{title} | paper" for title in CORPORA.values()) + " |"
    lines = ["### Table 1: how widely the influence on a state is spread over the inputs", "", head]
    lines.append("|" + "---|" * (1 + 2 * len(CORPORA)))
    for encoder, title in ENCODERS.items():
        for projection in ("softmax", "sparsemax"):
            cells = []
            for name in CORPORA:
                found = finding(results[name, encoder], AUDIT, projection, "entropy_states")
                ours = "–" if found is None else f"{found.mean:.2f} ± {found.std:.2f}"
                theirs = STATE_ENTROPY[name, encoder, projection]
                cells += [ours, f"{theirs[0]:.2f} ± {theirs[1]:.2f}"]
            lines.append(f"| {title}, {projection} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def trends(results: Results) -> str:
    """Table 2 beside ours: over the models of the sweep, and text by text."""
    lines = [
        "### Table 2: correlation of λ with the entropy of inputs' influence on the output",
        "",
        "| corpus | model | Kendall τ-b over models | Spearman ρ over models | τ-b within a text [95 %] | paper |",
        "|---|---|---|---|---|---|",
    ]
    for (name, encoder), result in results.items():
        means = [mean(result, "entropy_gradient", subject(strength)) for strength in STRENGTHS]
        tau, rho = kendalltau(STRENGTHS, means).statistic, spearmanr(STRENGTHS, means).statistic
        within = finding(result, AUDIT, "attention", "trend_entropy")
        told = "–" if within is None else f"{within.mean:.3f} [{within.low:.3f}, {within.high:.3f}]"
        row = (CORPORA[name], ENCODERS[encoder], f"{tau:.3f}", f"{rho:.3f}", told, f"{TREND[name, encoder]:.3f}")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


MEASURES = {
    "right": "accuracy",
    "support": "words attended",
    "entropy_attention": "H(α)",
    "entropy_gradient": "H(g_y)",
    "entropy_loo": "H(LOO)",
    "entropy_states": "H(g_h)",
    "tau_input": "τ with inputs",
    "tau_state": "τ with states",
}


def sweep(name: str, encoder: str, results: Results) -> str:
    """Every model of one corpus and encoder: figures 1 to 3 in numbers."""
    result = results[name, encoder]
    lines = [f"### {CORPORA[name]}, {ENCODERS[encoder]}: {result['corpus']['audited']:,} test texts", ""]
    lines += ["| projection | " + " | ".join(MEASURES.values()) + " |", "|" + "---|" * (1 + len(MEASURES))]
    for projection in ("softmax", *map(subject, STRENGTHS)):
        found = [mean(result, measure, projection) for measure in MEASURES]
        cells = ["–" if value is None else f"{value:.3f}" for value in found]
        lines.append(f"| {projection} | " + " | ".join(cells) + " |")
    return "\n".join(lines)

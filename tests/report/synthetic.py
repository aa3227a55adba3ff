"""A record as an audit would leave it, made up: invented texts and random numbers with known effects."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from assay.audits.findings import tell
from assay.records import STORIES, Finding, Record, finding_rows
from tests.report.erased import ERASED, smallest_set
from tests.report.invented import EXPLAINERS, FAITHFUL, MANY, NEW, SIGNED, agreements, all_scores, found
from tests.report.trained import MAKE, QUESTIONS, numbers

__all__ = ["FAITHFUL", "MANY", "SIGNED", "changed", "failing", "remade", "synthetic_record", "thinned", "worded"]

OPENINGS = ["the film", "this story", "her second novel", "the last act", "their new play", "a quiet comedy"]
MIDDLES = [
    "moves slowly",
    "never lies",
    "tries too hard",
    "keeps its promise",
    "wanders about",
    "sings",
    "is set in winter",
]
LINKS = ["and", "but", "while", "although", "because", "so"]
ENDINGS = [
    "dull as rain",
    "a rare delight",
    "neither warm nor wise",
    "wonderfully alive",
    "not worth the ticket",
    "fine",
]
HOSTILE = [
    '<script>alert(1)</script> is what this <b>film</b> & its "author" say',
    "سلام دنیا این فیلم بسیار خوب بود",
    "what a ride 🎢 truly 👩‍👩‍👧 lovely ❤️ stuff",
    "line one\n  indented\tline two  with   gaps",
    "{{ 7 * 7 }} {% raw %} ${x} </style><img src=x onerror=alert(2)>",
]
SHARED = ("example", "audit", "label", "predicted", "probability", "length")
AUDITS = {
    "deciding": ("Do the words that an explanation names decide?", "this tool"),
    "agreement": (
        "Does attention rank words as other measures of importance do?",
        "Jain and Wallace (2019), section 4.1",
    ),
    "permutation": (
        "Would the prediction change if attention were shuffled?",
        "Jain and Wallace (2019), section 4.2.1",
    ),
    "adversary": (
        "How different can attention be with the same prediction?",
        "Jain and Wallace (2019), section 4.2.2",
    ),
    "layers": ("Which layers' attention does the answer depend on?", "Jain and Wallace (2019)"),
    "truth": ("Do the scores find the evidence that is known?", "DeYoung et al. (2020)"),
    "erasure": ("Does the prediction change when the words are taken away?", "DeYoung et al. (2020)"),
    "plausibility": ("Do the explanations mark the words that people mark?", "DeYoung et al. (2020)"),
    "sanity": ("Does the explanation notice when the model is another one?", "Adebayo et al. (2018)"),
    "stability": ("Does the explanation hold still?", "Alvarez-Melis and Jaakkola (2018)"),
    "consistency": ("Where do the explanations contradict each other?", "Krishna et al. (2022)"),
    "roar": ("Does a model without the words get worse?", "Hooker et al. (2019)"),
    "shortcut": ("Where a word that means nothing decides, is it shown?", "Bastings et al. (2022)"),
    "single_weight": ("Does the top item matter more than another?", "Serrano and Smith (2019), section 4"),
    "minimal_set": ("How many items must be erased?", "Serrano and Smith (2019), section 5"),
} | QUESTIONS


def synthetic_record(
    *,
    count: int = 300,
    classes: tuple[str, ...] = ("negative", "positive"),
    explainers: tuple[str, ...] = tuple(EXPLAINERS),
    audits: tuple[str, ...] = ("deciding", "agreement", "permutation", "adversary"),
    kind: str = "exact",
    sentences: int = 1,
) -> Record:
    """A record of `count` examples; with the audit `truth` each text has deciding words."""
    made = _made(count, tuple(classes), tuple(explainers), tuple(audits), kind, sentences)
    return replace(made, summary=deepcopy(made.summary))  # a test may change its own


@cache
def _made(
    count: int,
    classes: tuple[str, ...],
    explainers: tuple[str, ...],
    audits: tuple[str, ...],
    kind: str,
    sentences: int,
) -> Record:
    draw = np.random.default_rng(7)
    long = " ".join(_text(draw) for _ in range(90))
    usual = (" ".join(_text(draw) for _ in range(sentences)) for _ in range(count))
    texts = [*HOSTILE, long, *usual][:count]
    examples = [_example(draw, place, text, classes, explainers, audits) for place, text in enumerate(texts)]
    instances = [row for example in examples for row in _instances(draw, example, explainers, audits)]
    findings = [f for audit in audits for f in _findings(audit, instances, classes, kind)]
    return tell(
        Record(
            _summary(classes, explainers, audits, kind, examples, findings),
            pa.Table.from_pylist(instances, schema=_schema(instances)),
            pa.Table.from_pylist(examples),
        )
    )


def remade(record: Record, **parts: Any) -> Record:
    """The record with other parts, and with the conclusions that follow from them."""
    made = replace(record, **parts)
    audits = {
        name: {key: value for key, value in about.items() if key not in ("story", "conclusion")}
        for name, about in made.summary["audits"].items()
    }
    bare = {key: value for key, value in made.summary.items() if key not in (STORIES, "together")}
    return tell(replace(made, summary=bare | {"audits": audits}))


def changed(record: Record, audit: str, subject: str, measure: str, **values: Any) -> Record:
    """The record with other values in one finding over all examples."""
    place = (audit, subject, measure, "all")
    rows = [
        row | values if (row["audit"], row["subject"], row["measure"], row["group"]) == place else row
        for row in record.summary["findings"]
    ]
    return remade(record, summary=record.summary | {"findings": rows})


def thinned(record: Record, *columns: str, every: int) -> Record:
    """The record with these numbers in every so-many-th row of its instances alone."""
    kept = np.arange(record.instances.num_rows) % every == 0
    table = record.instances
    for name in columns:
        values = pa.array(table[name].to_numpy(), mask=~kept)
        table = table.set_column(table.column_names.index(name), name, values)
    return remade(record, instances=table)


def failing(record: Record) -> Record:
    """The record with explainers that all fail."""
    for name in record.summary["explainers"]:
        low = 0.3 if name == "random" else 0.5
        record = changed(record, "deciding", name, "economy", mean=low + 0.01, low=low, high=low + 0.02)
    return record


def worded(record: Record, shape: str = "hierarchical", items: str = "sentences") -> Record:
    """The record as one of a model of this shape, whose attention is over these items."""
    return remade(
        record, summary=record.summary | {"model": record.summary["model"] | {"shape": shape, "items": items}}
    )


def _text(draw: np.random.Generator) -> str:
    parts = [f"{draw.choice(OPENINGS)} {draw.choice(MIDDLES)}" for _ in range(draw.integers(1, 4))]
    return f" {draw.choice(LINKS)} ".join(parts) + f" , {draw.choice(ENDINGS)} ."


def _spans(text: str) -> tuple[list[int], list[int]]:
    starts, ends, place = [], [], 0
    for word in text.split():
        place = text.index(word, place)
        starts.append(place)
        place += len(word)
        ends.append(place)
    return starts, ends


def _example(
    draw: np.random.Generator,
    place: int,
    text: str,
    classes: tuple[str, ...],
    explainers: tuple[str, ...],
    audits: tuple[str, ...],
) -> dict[str, Any]:
    starts, ends = _spans(text)
    size = len(starts)
    base = draw.exponential(0.1, size)
    truth = np.zeros(size, dtype=bool)
    truth[draw.choice(size, min(2, size), replace=False)] = True
    known = "truth" in audits or "plausibility" in audits
    base = base + truth * (0.4 if known else 0.0)
    label = int(draw.integers(len(classes)))
    predicted = label if draw.random() < 0.83 else int(draw.integers(len(classes)))
    sure = float(draw.uniform(0.6, 0.99))
    rest = (1 - sure) / max(len(classes) - 1, 1)
    scores = {f"score:{name}": values.tolist() for name, values in all_scores(draw, base, explainers).items()}
    furthest = np.roll(scores.get("score:attention", base), 1 + size // 2)
    attacked = "adversary" in audits
    erased = {"smallest_set": smallest_set(place, size)} if "minimal_set" in audits else {}
    erased |= {"deceived": (base / base.sum()).tolist()} if "deception" in audits else {}
    return erased | {
        "example": place,
        "text": text,
        "starts": starts,
        "ends": ends,
        "label": label,
        "predicted": predicted,
        "probabilities": [sure if c == predicted else rest for c in range(len(classes))],
        "truth": truth.tolist() if known else None,
        "query": None,
        **scores,
        "adversary": furthest.tolist() if attacked else None,
        "adversary_jsd": float(draw.beta(9, 2) * math.log(2)) if attacked else None,
        "adversary_tvd": float(draw.uniform(0, 0.01)) if attacked else None,
    }


def _instances(
    draw: np.random.Generator, example: dict[str, Any], explainers: tuple[str, ...], audits: tuple[str, ...]
) -> list[dict[str, Any]]:
    shared = {key: example[key] for key in ("example", "label", "predicted")}
    shared |= {"probability": max(example["probabilities"]), "length": len(example["starts"])}
    scores = {name: np.abs(np.array(example[f"score:{name}"])) for name in explainers}
    peak = {"max_attention": float(scores["attention"].max()) if "attention" in scores else None}
    measures: dict[str, dict[str, Any]] = {
        "agreement": agreements(scores),
        "permutation": {"median_tvd": float(draw.beta(1.2, 25)), **peak},
        "adversary": {
            "jsd": example["adversary_jsd"],
            "jsd_upper": None,
            "tvd": example["adversary_tvd"],
            **peak,
        },
        "truth": {},
    }
    if "truth" in audits:
        hits = {name: found(values, np.array(example["truth"])) for name, values in scores.items()}
        measures["truth"] = {f"auprc:{n}": p for n, (p, _) in hits.items()}
        measures["truth"] |= {f"precision:{n}": p for n, (_, p) in hits.items()}
    measures |= {audit: NEW[audit](draw, example, explainers) for audit in audits if audit in NEW}
    measures |= {audit: ERASED[audit](example) for audit in audits if audit in ERASED}
    measures |= {audit: numbers(audit, example) for audit in audits if audit in MAKE}
    return [{**shared, "audit": audit, **measures[audit]} for audit in audits]


def _schema(instances: list[dict[str, Any]]) -> pa.Schema:
    names = dict.fromkeys([*SHARED, *(key for row in instances for key in row)])
    kinds = {"audit": pa.string()} | dict.fromkeys(("example", "label", "predicted", "length"), pa.int64())
    return pa.schema([(name, kinds.get(name, pa.float64())) for name in names])


def _findings(audit: str, instances: list[dict[str, Any]], classes: tuple[str, ...], kind: str) -> list[Finding]:
    rows = [row for row in instances if row["audit"] == audit]
    names = [key for key in rows[0] if key not in SHARED and not key.startswith("p:")] if rows else []
    findings = []
    for name in names:
        measure, _, subject = name.partition(":")
        for group in ("all", *classes):
            mine = [row for row in rows if group == "all" or classes[row["predicted"]] == group]
            values = np.array([row[name] for row in mine if row[name] is not None], dtype=float)
            values = values[np.isfinite(values)]
            if len(values) == 0:
                continue
            margin = 1.96 * values.std() / math.sqrt(len(values))
            p = [row[f"p:{subject}"] for row in mine if measure == "tau"]
            findings.append(
                Finding(
                    audit,
                    subject or "attention",
                    measure,
                    group,
                    float(values.mean()),
                    float(values.mean() - margin),
                    float(values.mean() + margin),
                    float(values.std()),
                    len(values),
                    undefined=len(mine) - len(values),
                    significant=float(np.mean(np.array(p) <= 0.05)) if p else None,
                    p_value=_p_value(values) if measure.endswith("_gain") else None,
                    kind=kind if audit == "adversary" else "sample",
                )
            )
    return findings


def _p_value(values: np.ndarray) -> float:
    """That of a sign test in its normal limit, which is enough to be shown."""
    ups, downs = int((values > 0).sum()), int((values < 0).sum())
    return math.erfc(abs(ups - downs) / math.sqrt(2 * max(ups + downs, 1)))


def _own(explainers: tuple[str, ...], texts: int) -> list[Finding]:
    """What some explainers say of themselves."""
    told = {"integrated_gradients": ("gap", 4.2e-05), "lime": ("standard_error", 0.013), "anchors": ("precision", 0.97)}
    known = [(name, *told[name]) for name in explainers if name in told]
    return [Finding("explainers", n, m, "all", v, 0.9 * v, 1.1 * v, v / 2, texts, kind="exact") for n, m, v in known]


def _summary(
    classes: tuple[str, ...],
    explainers: tuple[str, ...],
    audits: tuple[str, ...],
    kind: str,
    examples: list[dict[str, Any]],
    findings: list[Finding],
) -> dict[str, Any]:
    return {
        "assay": "0.1.0",
        "first_layer": 0,
        "command": "assay audit --corpus planted:negation --encoder lstm --out 'runs/<first>'",
        "created": "2026-01-02T03:04:05+00:00",
        "seconds": 41.5,
        "versions": {"python": "3.11.9", "torch": "2.13.0", "numpy": "2.4.6"},
        "platform": "Linux, x86_64",
        "plan": {"corpus": "planted:negation", "encoder": "lstm", "alignment": "additive", "seed": 3}
        | {"explainers": list(explainers), "audits": list(audits), "limit": None, "epsilon": 0.01},
        "corpus": {
            "name": "planted:negation",
            "classes": list(classes),
            "train": 4000,
            "dev": 500,
            "test": 500,
        }
        | {
            "audited": len(examples),
            "planted": "plausibility" not in audits,
            "skipped": {"empty text": 2, "longer than 5,000 tokens": 1},
            "licence": "CC0",
        },
        "model": {
            "description": "BiLSTM (128 a direction), additive attention, linear decoder",
            "parameters": 1234567,
            "sha256": "9f" * 32,
            "folder": "model",
            "test": {"accuracy": 0.842, "macro_f1": 0.841, "auc": 0.911},
            "epochs": 8,
            "best_dev": 0.85,
            "shape": "flat",
            "history": {"recipe": {"architecture": {"encoder": "lstm"}}},
        },
        "explainers": {name: EXPLAINERS.get(name, f"Made up for {name}.") for name in explainers},
        "explainer_seconds": {name: 0.4 + 1.7 * place for place, name in enumerate(explainers)},
        "audits": {
            name: {
                "question": AUDITS[name][0],
                "paper": AUDITS[name][1],
                "applies": True,
                "why": None,
                "seconds": 1.5,
            }
            | {"kind": kind if name == "adversary" else "sample"}
            for name in audits
        },
        "findings": finding_rows(findings + _own(explainers, len(examples))),
    } | _costs(explainers)


def _costs(explainers: tuple[str, ...]) -> dict[str, Any]:
    """What older records do not hold."""
    passes = {
        name: {"forward": 1.0 + 2.5 * place, "backward": float(place % 2)} for place, name in enumerate(explainers)
    }
    layers = "the model has no stack of self-attention layers"
    left_out = {"rollout": layers, "flow": layers, "hotflip": "the model has no table of embeddings"}
    return {"explainer_cost": passes, "left_out": left_out}

"""The sentences of the page on training texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.writing import count, figures, percent

Answer = Mapping[str, Any]

TARGETS = {
    "margin": "the log-odds of {asked}",
    "logit": "the logit of {asked}",
    "probability": "the probability of {asked}",
    "loss": "the loss of {asked}",
}

LIMITS = (
    "A score is a prediction of what training again without the text would change, not its outcome. How good such "
    "predictions are for a model can be measured: assay influence --check lds, or --check removal.",
    "Texts that say the same stand in for one another: each alone may count little though all together count much.",
    "Training has luck in it. Another seed gives another model, and for that one other texts may count.",
)
SUSPECTED = (
    "A high place is a reason to look at a text, not a proof that its label is wrong: a rare but right label looks the "
    "same to a model.",
    "The plain loss is the usual signal: on texts with flipped labels no method found them clearly better.",
)


def headline(answer: Answer) -> str:
    """The main finding in one sentence."""
    if answer["kind"] == "mislabelled":
        against = sum(each["predicted"] != each["label"] for each in answer["suspects"])
        return (
            f"{count(against)} of the {count(len(answer['suspects']))} most suspicious training texts have a label "
            "that the model itself would not give"
        )
    sure = percent(answer["probabilities"][answer["asked"]])
    if not answer["supporting"]:
        return f"{answer['asked']} ({sure}): no training text speaks for it"
    moved = abs(sum(each["score"] for each in answer["supporting"]))
    return (
        f"{answer['asked']} ({sure}): without the {count(len(answer['supporting']))} training texts that it leans on "
        f"most, {target(answer)} would be about {figures(moved)} {_worse(answer)}; it is {figures(answer['value'])}"
    )


def _worse(answer: Answer) -> str:
    return "higher" if answer["target"] == "loss" else "lower"


def target(answer: Answer) -> str:
    """What the scores are changes of."""
    return TARGETS[answer["target"]].format(asked=answer["asked"])


def reading(answer: Answer) -> str:
    """How the table is read."""
    lower, higher = ("rise", "fall") if answer["target"] == "loss" else ("fall", "rise")
    return (
        f"Each number is how far {target(answer)} is predicted to move if the model is trained without that text: "
        f"without a supporting text it would {lower}, without an opposing one {higher}."
    )


def facts(answer: Answer) -> list[tuple[str, str]]:
    """Where the numbers come from."""
    model, corpus, method = answer["model"], answer["corpus"], answer["method"]
    covered = method.get("covered")
    found = [
        ("Model", f"{model['description']}; {count(model['parameters'])} parameters"),
        ("Training texts", f"{count(corpus['train'])} of {corpus['name']}"),
        ("Method", f"{method['name']}" + (f": {method['meaning']}" if method.get("meaning") else "")),
    ]
    if covered is not None:
        found.append(("Parameters that took part", percent(covered)))
    found += [
        (name.replace("_", " ").capitalize(), _plain(value)) for name, value in (method.get("notes") or {}).items()
    ]
    found += [
        ("Weights (sha256)", model["sha256"]),
        ("Seconds", figures(answer["seconds"])),
        ("Versions", ", ".join(f"{name} {version}" for name, version in answer["versions"].items())),
    ]
    return found


def caveats(answer: Answer) -> list[str]:
    """What a reader must know before the numbers."""
    found = []
    covered = answer["method"].get("covered")
    if covered is not None and covered < 0.9995:
        found.append(f"This method reads {percent(covered)} of the parameters; what the others learnt is not seen.")
    if not answer["corpus"]["course"]:
        found.append(
            "How this model was trained is not known: the texts are taken on trust, and so is that training ended "
            "where the loss is smallest."
        )
    if answer["kind"] == "text" and answer["asked"] != answer["predicted"]:
        found.append(f"The model predicts {answer['predicted']}; the scores are for {answer['asked']}.")
    return found


def _plain(value: Any) -> str:
    return figures(value) if isinstance(value, float) else str(value)

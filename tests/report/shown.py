"""Explanations made up for notebooks."""

from __future__ import annotations

import random

from assay.run.explaining import Explanation

NAMES = (
    *("attention", "attention_x_gradient", "gradient", "gradient_norm", "input_x_gradient"),
    *("integrated_gradients", "lime", "leave_one_out", "owen", "random"),
)
TEXT = (
    "the film moves slowly and never lies but its wonderfully alive ending keeps every promise that the first "
    "extraordinarily self-congratulatory act made to us"
)
SENTENCE = TEXT.split()
HOSTILE = [
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(2)>",
    '"onmouseover="alert(3)',
    "{{7*7}}",
    "&amp;",
    "سلام",
    "\u202eevil\u2066",
    "nul\0l",
    "\ud800",
    "=cmd|' /C calc'!A0",
    "x" * 4000,
    "../../etc/passwd",
    "end",
]


def made_up(
    words: list[str], names: tuple[str, ...] = NAMES, classes: tuple[str, ...] = ("good", "bad")
) -> Explanation:
    """An explanation of these words, with scores of either sign; all weights of attention are at least 0."""
    draw = random.Random(0)
    ends = [sum(map(len, words[: place + 1])) + place for place in range(len(words))]
    return Explanation(
        text=" ".join(words),
        query=None,
        spans=[(end - len(word), end) for word, end in zip(words, ends, strict=True)],
        predicted=classes[0],
        probabilities=dict.fromkeys(classes[1:], 0.1 / (len(classes) - 1)) | {classes[0]: 0.9},
        scores={
            name: [draw.random() if name == "attention" else draw.gauss(0.1, 0.3) for _ in words] for name in names
        },
        target=classes[0],
        notes={name: {"gap": 3.2e-05} if name == "integrated_gradients" else {} for name in names},
        left_out={"rollout": "the model has no stack of self-attention layers"},
    )


def hostile() -> Explanation:
    """Every word, class, explainer and reason wants to be more than text."""
    made = made_up(HOSTILE, ("attention", "<b>bold</b>"), ("<i>first</i>", "\u202esecond"))
    made.left_out["<u>x</u>"] = "<script>alert(4)</script>"
    return made

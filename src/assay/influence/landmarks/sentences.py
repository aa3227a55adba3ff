"""Explanations as a sentence: the training texts that a text reminds the model of (Croce et al., 2019)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from assay.data.text import listed, quoted
from assay.errors import AssayError
from assay.influence.landmarks.model import LandmarkModel
from assay.influence.landmarks.reasons import reasons

Named = tuple[str, str]
"""A text and the name of its class."""


def sentence(answer: str, alike: Sequence[str], unlike: Sequence[Named] = (), against: Sequence[Named] = ()) -> str:
    """“I answer X because it reminds me of …, which is also X, and not of …, which is Y.”

    Texts `against` the answer follow: “although it also reminds me of …, which is Y”.
    """
    if alike:
        also = "which is also" if len(alike) == 1 else "which are also"
        start = (
            f"I answer {answer} because it reminds me of {listed([quoted(text) for text in alike])}, {also} {answer}"
        )
        start += f", and not of {_listed(unlike)}" if unlike else ""
    else:
        start = f"I answer {answer}, and no text that it reminds me of is also {answer}"
    return start + (f", although it also reminds me of {_listed(against)}" if against else "") + "."


def _listed(texts: Sequence[Named]) -> str:
    return listed([f"{quoted(text)}, which is {name}" for text, name in texts])


def because(model: LandmarkModel, text: str, count: int = 1, contrast: bool = False, objection: bool = False) -> str:
    """The sentence that explains the answer to a text by the landmarks that speak most for it.

    With `contrast`, also the one of another class that it is less like than usual and that speaks most for the answer;
    with `objection`, the one that it is like and that speaks most against it.
    """
    if any(not isinstance(each, str) for each in model.texts):
        raise AssayError("The landmarks are rows of word ids, not texts; train on the texts to have sentences.")
    likeness = model.likeness([text])
    answer = int(model.network(likeness)[0].argmax())
    found = reasons(model, likeness, torch.tensor([answer]))[0]
    known = {index: (str(model.texts[j]), model.classes[model.labels[j]]) for j, index in enumerate(model.indices)}
    return sentence(
        model.classes[answer],
        [known[index][0] for index in found.alike[:count]],
        [known[index] for index in found.unlike[: int(contrast)]],
        [known[index] for index in found.against[: int(objection)]],
    )

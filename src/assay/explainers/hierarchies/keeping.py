"""Caches a fitted language model in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assay.data.batches import Tokenised
from assay.errors import AssayError, library_errors
from assay.explainers.hierarchies.language import CARD, Language, LanguageOptions
from assay.models.store import Checkpoint

CHECKPOINT = "checkpoint.safetensors"


def kept(
    folder: Path | None,
    rows: Callable[[], Sequence[Tokenised]],
    words: int,
    data: str | None,
    options: LanguageOptions | None = None,
) -> Language:
    """The language model in the folder, or one fitted to the rows now and stored there.

    `data` stands for what it learns from; one that learnt from something else is refused, or from anything where it is
    not known. Rows are asked for if there is none yet; an interrupted training goes on.
    """
    chosen = options or LanguageOptions()
    if folder is not None and (folder / CARD).is_file():
        if data not in (None, known(folder).get("data")):
            raise AssayError(
                f"The language model in {folder} learnt from other texts than these; name the texts that the model "
                "learnt from, or remove that folder."
            )
        return Language.load(folder)
    learnt = rows()
    identity = {"data": data, "words": words, "options": asdict(chosen)}
    if folder is None:
        return Language.fit(learnt, words, chosen)
    folder.mkdir(parents=True, exist_ok=True)  # what cannot be written to is known before the work
    language = Language.fit(learnt, words, chosen, checkpoint=Checkpoint(folder / CHECKPOINT, identity))
    language.save(folder, identity)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return language


def known(folder: Path) -> dict[str, Any]:
    """What the language model in a folder was fitted to."""
    with library_errors(lambda reason: f"The language model in {folder} is damaged ({reason}); fit it again."):
        return dict(json.loads((folder / CARD).read_text(encoding="utf-8"))["identity"])

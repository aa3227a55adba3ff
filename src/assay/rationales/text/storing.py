"""Saves and loads writers: weights as safetensors, everything else as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from safetensors.torch import load_file

from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError, library_errors
from assay.files import write_text
from assay.models.store import CARD, TOKENISER, WEIGHTS, save_tensors
from assay.rationales.text.network import EncoderDecoder, Sizes
from assay.rationales.text.writer import Writer

FORMAT = "assay-writer-1"


def save(writer: Writer, folder: Path) -> None:
    """Writes the folder; the card is written last and marks it as complete."""
    write_text(folder / TOKENISER, writer.tokeniser.to_json())
    save_tensors(writer.network.state_dict(), folder / WEIGHTS)
    card = {
        "format": FORMAT,
        "sizes": asdict(writer.network.sizes),
        "text": asdict(writer.tokeniser.options),
        "history": writer.history,
    }
    write_text(folder / CARD, json.dumps(card, indent=1, ensure_ascii=False) + "\n")


def load(folder: Path, device: str = "cpu") -> Writer:
    """Reads the folder."""
    if not (folder / CARD).is_file():
        raise AssayError(f"{folder} holds no writer: it has no {CARD}.")
    with library_errors(lambda reason: f"The writer in {folder} is damaged ({reason}); train it again."):
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        if card["format"] != FORMAT:
            raise AssayError(f"{folder} holds another kind of model, no writer.")
        tokeniser = Tokeniser.from_json((folder / TOKENISER).read_text(encoding="utf-8"), TextOptions(**card["text"]))
        network = EncoderDecoder(Sizes(**card["sizes"]), len(tokeniser.vocabulary))
        network.load_state_dict(load_file(folder / WEIGHTS))
    return Writer(network.to(device).eval(), tokeniser, card["history"])

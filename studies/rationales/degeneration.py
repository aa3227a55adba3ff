"""Games that begin badly: does a recipe find the deciding words once its selector tells the class by one place?

    python -m studies.rationales.degeneration [--recipes rnp,dr,mcd,fr,n2r] [--seeds 0,1,2]

Prints, for each recipe and seed, how often the model is right and how many of the selected words decide.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from dataclasses import replace

import numpy as np
import torch

from assay.data.batches import Tokenised
from assay.models.config import Architecture, Training
from assay.models.network import Classifier
from assay.models.recipes import drawn
from assay.models.textmodel import groups, predict
from assay.rationales.learning import Options, learn
from assay.rationales.players import assemble_players
from assay.rationales.recipes import RECIPES
from assay.rationales.trainers import SEED_STEP
from studies.rationales.skewing import skewed

FILLERS, KEYS, LENGTH = 60, 8, 12
LONG = Training(epochs=90, patience=90, learning_rate=5e-3, batch_size=64)


def rows(count: int, seed: int) -> list[Tokenised]:
    """Texts of common words; one in the second half of each is of eight that stand for its class."""
    generator, found = torch.Generator().manual_seed(seed), []
    for index in range(count):
        label = index % 2
        ids = torch.randint(4 + 2 * KEYS, 4 + 2 * KEYS + FILLERS, (LENGTH,), generator=generator)
        place, key = (
            int(torch.randint(*span, (1,), generator=generator)) for span in ((LENGTH // 2, LENGTH), (0, KEYS))
        )
        ids[place] = 4 + label * KEYS + key
        truth = torch.arange(LENGTH) == place
        found.append(Tokenised(index, ids, torch.zeros(LENGTH, 2).int(), torch.zeros(LENGTH).long(), label, truth))
    return found


def ended(name: str, count: int = 600, training: Training = LONG) -> tuple[float, float]:
    """Accuracy and the share of deciding words among those selected, after a game whose selector tells the class."""
    scheme = skewed(RECIPES[name](Options(rate=1 / LENGTH)), "selector", share=0.5)
    architecture = Architecture(encoder="cnn", embedding=24, hidden=16, alignment_size=16)
    readers = {}
    for place, reader in enumerate(scheme.readers):
        words = 4 + 2 * KEYS + FILLERS if reader == "predictor" else 4
        network = drawn(architecture, words, 2, training.seed + SEED_STEP * place)
        assert isinstance(network, Classifier)
        readers[reader] = network
    players = assemble_players(scheme.rules, readers, (), 2, training.seed)
    model, _ = learn(players, scheme, rows(count, 1), rows(150, 2), training)
    test, hits = rows(400, 3), 0
    for _, batch in groups(model, test):
        hits += int((model.selection(model.embed(batch), batch).kept & batch.truth).sum())
    return float(np.mean(predict(model, test).argmax(-1) == [row.label for row in test])), hits / len(test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", default="rnp,dr,mcd,fr,n2r")
    parser.add_argument("--seeds", default="0,1,2")
    options = parser.parse_args()
    for name in options.recipes.split(","):
        found = [ended(name, training=replace(LONG, seed=int(seed))) for seed in options.seeds.split(",")]
        print(name, *(f"right {right:.2f}, deciding {deciding:.2f};" for right, deciding in found), flush=True)


if __name__ == "__main__":
    main()

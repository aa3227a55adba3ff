"""Training run: everything needed to repeat a training exactly, or without some examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int

from assay.data.batches import Tokenised
from assay.data.examples import Corpus
from assay.errors import AssayError
from assay.models.config import Training
from assay.models.fit import LABELS, ClassifierTrainer, class_weights, epoch_groups
from assay.models.hf_finetuning import Answers, FineTuning
from assay.models.hf_finetuning import begun as begun_body
from assay.models.hf_loading import Opening
from assay.models.objectives import Objective
from assay.models.recipes import Recipe, initialise, label_objective, learnable
from assay.models.store import Opened, Trained
from assay.models.textmodel import TextModel

Watch = Callable[[int, TextModel, torch.optim.Optimizer], None]
"""Is called before each step with its number, and after the last."""


@dataclass(frozen=True)
class TrainingRun:
    """A network before training, its rows and all options; `learn` ends in the same weights every time."""

    network: TextModel
    rows: Sequence[Tokenised]
    training: Training
    epochs: int  # up to the one whose weights were kept
    lesson: Objective = field(default=LABELS)

    @classmethod
    def of(cls, model: Opened, corpus: Corpus) -> TrainingRun:
        """The training run of a model that was trained by this package on this corpus."""
        rows, _, _ = learnable(corpus, model.tokeniser, model.tokeniser.options.longest)
        epochs = int(model.history.get("best_epoch", 0))
        if isinstance(model, Trained) and "recipe" in model.history:
            recipe = Recipe.of(model.history["recipe"])
            network: TextModel = initialise(recipe, model.tokeniser, len(model.classes)).to(model.device)
            return cls(network, rows, recipe.training, epochs, label_objective(model.tokeniser, recipe.training))
        if "finetuning" in model.history:
            tuning = FineTuning.of(model.history["finetuning"])
            body, _ = begun_body(tuning, model.classes, Opening(device=str(model.device)))
            return cls(body, rows, tuning.training, epochs, Answers())
        raise AssayError(
            "How this model was trained is not known; only one that was made by 'assay train' can be trained again."
        )

    def learn(self, shares: Float[np.ndarray, " N"] | None = None, watch: Watch | None = None) -> TextModel:
        """Trains; `shares` are weights of the rows in the loss, 0 where a row is left out."""
        with torch.random.fork_rng():
            trainer = self.trainer()
            for number, group in enumerate(self.groups()):
                if watch is not None:
                    watch(number, trainer.network, trainer.optimiser)
                trainer.step(group, None if shares is None else torch.from_numpy(shares[group]))
            if watch is not None:
                watch(number + 1, trainer.network, trainer.optimiser)
        return trainer.network.eval()

    def trainer(self) -> ClassifierTrainer:
        """The trainer of a copy of the network, before its first step."""
        network = deepcopy(self.network).train()
        return ClassifierTrainer.of(network, self.rows, self.training, self.lesson)

    def groups(self) -> Iterator[Int[np.ndarray, " n"]]:
        """The rows of each step in the order of the training; restores the random state, so dropout is repeated."""
        lengths = np.array([len(row.ids) for row in self.rows])
        for epoch in range(self.epochs):
            yield from epoch_groups(epoch, lengths, self.training)

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.epochs * -(-len(self.rows) // self.training.batch_size)

    def weights(self) -> Float[np.ndarray, " N"]:
        """The weight of each row in the loss: that of its class, 1 where classes are not balanced."""
        weights = class_weights(self.rows, self.network, self.training)
        labels = np.array([row.label for row in self.rows])
        return np.ones(len(labels)) if weights is None else weights.double().cpu().numpy()[labels]

    def decay(self) -> dict[str, float]:
        """The strength of L2 regularisation of each parameter."""
        names = [name for name, each in self.network.named_parameters() if each.requires_grad]
        embedding = self.training.decay if self.training.decay_embeddings else 0.0
        return {name: embedding if name.startswith("embedding.") else self.training.decay for name in names}

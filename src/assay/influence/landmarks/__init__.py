"""Landmark classifiers: texts are classified by their similarity to some training texts (Croce et al., 2018, 2019)."""

from __future__ import annotations

from assay.influence.landmarks.faithfulness import Faithfulness, faithfulness
from assay.influence.landmarks.kernels import KERNELS
from assay.influence.landmarks.method import Landmarks, influence
from assay.influence.landmarks.model import LandmarkModel, LandmarkRecipe
from assay.influence.landmarks.network import LandmarkNetwork, Layers
from assay.influence.landmarks.relevance import relevance
from assay.influence.landmarks.sentences import because, sentence
from assay.influence.landmarks.training import train

__all__ = [
    "KERNELS",
    "Faithfulness",
    "LandmarkModel",
    "LandmarkNetwork",
    "LandmarkRecipe",
    "Landmarks",
    "Layers",
    "because",
    "faithfulness",
    "influence",
    "relevance",
    "sentence",
    "train",
]

"""Kernels: positive semidefinite similarities of texts, or of rows of word ids."""

from __future__ import annotations

from assay.influence.landmarks.kernels.kernel import Kernel, Product, Sum
from assay.influence.landmarks.kernels.passages import Passage
from assay.influence.landmarks.kernels.spectrum import Spectrum
from assay.influence.landmarks.kernels.subsequences import Subsequences
from assay.influence.landmarks.kernels.vectors import Represented, WordVectors

KERNELS: dict[str, Kernel] = {
    "words": Spectrum(),
    "phrases": Spectrum(longest=3),
    "characters": Spectrum(unit="character", shortest=3, longest=5),
    "vectors": WordVectors(),
    "subsequences": Subsequences(),
    "character_subsequences": Subsequences(unit="character", length=4),
    "like_words": Subsequences(smooth=True),
    "representations": Represented(),
}
"""All kernels, by name."""

__all__ = ["KERNELS", "Kernel", "Passage", "Product", "Represented", "Spectrum", "Subsequences", "Sum", "WordVectors"]

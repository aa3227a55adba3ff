"""Pretrained word vectors."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from assay.data.pins import SOURCES
from assay.data.sources import local_copy, member
from assay.errors import AssayError

GLOVE = "glove_6b_50d_top40k/glove.6B.50d.top40k.txt.gz"
SIZE = 50


def glove(words: Sequence[str]) -> tuple[Float[np.ndarray, "V 50"], Bool[np.ndarray, " V"]]:
    """The GloVe vector of each word, zero if unknown, and the mask of known words.

    Pennington et al. (2014), 50 numbers a word; a local copy comes before the packaged 400,000 words.
    """
    copy = local_copy(GLOVE)
    return packaged_vectors(words) if copy is None else written_vectors(copy, words)


def written_vectors(path: Path, words: Sequence[str]) -> tuple[Float[np.ndarray, "V 50"], Bool[np.ndarray, " V"]]:
    """Vectors from lines of a word and its numbers; only the lines of wanted words are parsed."""
    wanted = {word.encode() for word in words}
    table: dict[bytes, Float[np.ndarray, " 50"]] = {}
    try:
        with gzip.open(path, "rb") as lines:
            for line in lines:
                word, _, numbers = line.partition(b" ")
                if word in wanted:
                    table[word] = np.array(numbers.split(), dtype=np.float32).reshape(SIZE)
    except (OSError, EOFError, ValueError, zlib.error) as fault:
        raise AssayError(f"{path} holds no GloVe vectors of {SIZE} numbers ({fault}); fetch it again.") from fault
    found = np.array([word.encode() in table for word in words], dtype=bool)
    vectors = np.zeros((len(words), SIZE), dtype=np.float32)
    if found.any():
        vectors[found] = [table[word.encode()] for word in words if word.encode() in table]
    return vectors, found


def packaged_vectors(words: Sequence[str]) -> tuple[Float[np.ndarray, "V 50"], Bool[np.ndarray, " V"]]:
    """Vectors from a matrix on disk and the list of its words; only wanted rows are read."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    listed = pq.read_table(member(SOURCES["glove"], "glove_6B_index.parquet"))["index"]
    matrix = np.load(member(SOURCES["glove"], "glove_6B_50d_emb.npy"), mmap_mode="r", allow_pickle=False)
    rows = pc.index_in(pa.array(words, pa.string()), value_set=listed.combine_chunks())
    found = rows.is_valid().to_numpy(zero_copy_only=False)
    vectors = np.zeros((len(words), SIZE), dtype=np.float32)
    vectors[found] = matrix[rows.drop_null().to_numpy()]
    return vectors, found

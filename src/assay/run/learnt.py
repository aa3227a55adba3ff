"""Whether a model learnt from a corpus."""

from __future__ import annotations

from assay.data.examples import Corpus
from assay.errors import AssayError
from assay.models.recipes import fingerprint
from assay.models.store import Opened


def check_learnt(model: Opened, corpus: Corpus) -> None:
    """Refuses a corpus that a model which was made here did not learn from; of others it is taken on trust."""
    known = model.history.get("data")
    if known is not None and known != fingerprint((*corpus.train, *corpus.dev)):
        name = model.history.get("corpus", "another corpus")
        raise AssayError(
            f"The model learnt from {name}, and from other texts than these; name the same corpus or file, with "
            "the same --train-limit, --joined, --parted and --seed as in the training."
        )

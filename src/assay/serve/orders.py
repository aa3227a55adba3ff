"""Job requests: validated names and numbers, and the command line made from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from assay.audits import AUDITS, USUAL_AUDITS
from assay.data.corpora import listing
from assay.errors import AssayError, unknown
from assay.explainers import EXPLAINERS, USUAL
from assay.serve.inspection import NAME

TRAIN = "train"
HERE = ("local copy", "cached", "generated")  # corpora that nothing is fetched for
UPLOAD = "^[0-9a-f]{32}$"

Column = Annotated[str, Field(max_length=NAME)]
Names = Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=100)]


class Order(BaseModel):
    """Request body of an audit job."""

    model_config = ConfigDict(extra="forbid")

    upload: Annotated[str, Field(pattern=UPLOAD)] | None = None
    corpus: Annotated[str, Field(max_length=60)] | None = None
    kind: Literal["csv", "tsv", "jsonl"] = "csv"  # of the upload
    text_column: Column = "text"
    label_column: Column = "label"
    query_column: Column | None = None
    model: Annotated[str, Field(max_length=1000)] = TRAIN
    explainers: Names = list(USUAL)
    audits: Names = list(USUAL_AUDITS)
    limit: Annotated[int, Field(ge=1, le=1_000_000)] = 200
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0

    def check(self, models: Iterable[str]) -> None:
        """Raises for names of explainers, audits or models that are unknown."""
        if (self.upload is None) == (self.corpus is None):
            raise AssayError("Choose a file, or a corpus that is here.")
        if self.corpus is not None and self.corpus not in corpora():
            raise unknown("corpus", self.corpus, corpora())
        if self.model != TRAIN and self.model not in (known := list(models)):
            raise unknown("model", self.model, [TRAIN, *known])
        for kind, names, every in (("explainer", self.explainers, EXPLAINERS), ("audit", self.audits, AUDITS)):
            _check_names(kind, names, every)

    def check_columns(self, there: Sequence[str]) -> None:
        """Raises for columns that the file lacks, and for one column used twice."""
        wanted = {"texts": self.text_column, "classes": self.label_column, "questions": self.query_column or None}
        given = [name for name in wanted.values() if name is not None]
        for purpose, name in wanted.items():
            if name is not None and name not in there:
                raise AssayError(f"The file has no column {name!r:.60} to take the {purpose} from.")
        if len(set(given)) < len(given):
            raise AssayError("Texts and classes must come from different columns.")

    def arguments(self, folder: Path, reading: Sequence[str] = ()) -> list[str]:
        """The arguments after 'assay'. Every value is joined by '=', so that none can be taken for an option.

        `reading` are the options with which the live model was opened.
        """
        if self.upload is not None:
            data = [
                f"--data={folder / f'upload.{self.kind}'}",
                f"--text-column={self.text_column}",
                f"--label-column={self.label_column}",
                f"--query-column={self.query_column or ''}",
            ]
        else:
            data = [f"--data={self.corpus}"]
        return [
            *("audit", *data),
            *([] if self.model == TRAIN else [f"--model={self.model}", *reading]),
            f"--explainers={_listed(self.explainers, USUAL)}",
            f"--audits={_listed(self.audits, USUAL_AUDITS)}",
            f"--limit={self.limit}",
            f"--seed={self.seed}",
            f"--out={folder / 'run'}",
        ]


def corpora() -> dict[str, str]:
    """The corpora that are available here, each with a sentence."""
    return {row.name: row.description for row in listing() if row.where in HERE}


def _check_names(kind: str, names: Sequence[str], known: Iterable[str]) -> None:
    every = list(known)
    for name in names:
        if name not in every:
            raise unknown(kind, name, every)
    if not names or len(set(names)) < len(names):
        raise AssayError(f"Choose at least one {kind}, and each once.")


def _listed(names: Sequence[str], usual: Sequence[str]) -> str:
    return "usual" if set(names) == set(usual) else ",".join(names)

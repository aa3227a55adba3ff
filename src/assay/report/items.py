"""What the audited attention is spread over: words, or the sentences of a hierarchical model."""

from __future__ import annotations

from dataclasses import dataclass

from assay.records import Record


@dataclass(frozen=True)
class Items:
    """What one of the attended items is called, and several of them."""

    one: str
    many: str

    def named(self, text: str) -> str:
        """The text with `{item}` and `{items}` called by their names."""
        return text.format(item=self.one, items=self.many)


WORDS, SENTENCES = Items("word", "words"), Items("sentence", "sentences")


def items(record: Record) -> Items:
    """What the attention of the record's model is over; records that do not say so are over words."""
    return SENTENCES if record.summary.get("model", {}).get("items") == SENTENCES.many else WORDS

"""The bank: every model whose reasons are known, by family, with what it takes to make it again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from assay.data.coded import RULES
from assay.data.corpora import corpus
from assay.data.examples import Corpus
from assay.models.config import Architecture, Training
from assay.models.hf_finetuning import FineTuning, finetune
from assay.models.hf_loading import Opening
from assay.models.recipes import Recipe, train
from assay.models.store import Opened
from studies.verdict.built import ALGORITHMS, additive, built

NETWORKS = {
    "lstm": Recipe(Architecture("lstm", embedding=64, hidden=64, alignment_size=64)),
    "gru-dot": Recipe(Architecture("gru", "dot", embedding=64, hidden=64)),
    "cnn": Recipe(Architecture("cnn", embedding=64, hidden=64, alignment_size=64)),
    "transformer": Recipe(Architecture("transformer", embedding=64, hidden=32, alignment_size=64)),
    "average": Recipe(Architecture("average", embedding=64, hidden=64, alignment_size=64)),
}
RATES = {"transformer": 1e-3}  # of learning; the others learn at 2e-3
SLOW = {"transformer": 45}  # the most texts that are measured with a network
HOSTS = {  # corpora that code words are put into: networks that read them, seeds, how many texts are measured
    "sst": (("lstm", "gru-dot", "cnn", "transformer"), (0, 1), 90),
    "agnews": (("lstm", "cnn", "transformer"), (0, 1), 60),
}
LONG = {"lstm": ("keyword", "synonyms", "pair", "negation", "count"), "cnn": ("keyword", "double", "majority")}
"""The networks and rules of long texts, one seed each, as they take long."""

BAGS = ("keyword", "synonyms", "double", "majority")
"""The rules that a network can learn that sees every word by itself."""

SYNTHETIC = ("keyword", "phrase", "negation", "majority")


@dataclass(frozen=True)
class Cell:
    """One model of the bank: a network that learnt a corpus, or was set by hand, with a seed."""

    family: str
    corpus: str
    network: str
    seed: int
    texts: int = 90

    @property
    def whole(self) -> bool:
        """Whether every measure is taken, or only that of the rule: of MiniLM and of later seeds."""
        return self.seed == 0 and self.network != "minilm"

    @property
    def constructed(self) -> bool:
        """Whether the model is made so that its truth needs no intervention."""
        return self.family == "additive" or self.family.startswith("built")

    @property
    def name(self) -> str:
        return f"{self.family}/{self.corpus.rpartition(':')[2].replace('/', '-')}/{self.network}/{self.seed}"

    def made(self, runs: Path, device: str = "cpu") -> tuple[Opened, Corpus]:
        """The model and the corpus with its test texts; a model that was trained before is only read."""
        if self.family == "additive":
            return additive(corpus(self.corpus), self.seed)
        if self.network in ALGORITHMS:
            return built(self.network, corpus(self.corpus), self.seed)
        given, folder = corpus(self.corpus, self.seed), runs / self.name / "model"
        if self.network == "minilm":
            taught = FineTuning(
                training=Training(epochs=4, patience=1, learning_rate=1e-4, decay=0.0, clip=1.0, seed=self.seed)
            )
            return finetune(given, taught, folder, Opening(device=device, truncate=True)), given
        usual = NETWORKS[self.network]
        steps = Training(
            epochs=8 if self.network in SLOW else 14,
            patience=3,
            learning_rate=RATES.get(self.network, 2e-3),
            seed=self.seed,
        )
        return train(given, Recipe(usual.architecture, usual.text, steps), folder, device), given


def cells() -> list[Cell]:
    """Every cell, those that are quick first within a family."""
    return [*_coded(), *_synthetic(), *_by_hand(), *_pretrained()]


def few() -> list[Cell]:
    """One cell of every family: with a network that is quick, and with half of the texts."""
    first: dict[str, Cell] = {}
    for cell in cells():
        if cell.network != "minilm":
            first.setdefault(cell.family, replace(cell, texts=45))
    return list(first.values())


def _coded() -> Iterator[Cell]:
    """Code words in real texts: a family for each rule."""
    for host, (networks, seeds, texts) in HOSTS.items():
        for network in (*networks, *(("average",) if host == "sst" else ())):
            for seed in seeds:
                for rule in RULES if network != "average" else BAGS:
                    yield Cell(rule, f"planted:{rule}/{host}", network, seed, min(texts, SLOW.get(network, texts)))

    for network, rules in LONG.items():
        for rule in rules:
            yield Cell(rule, f"planted:{rule}/imdb", network, 0, 45)


def _synthetic() -> Iterator[Cell]:
    """Corpora of templates, of two classes."""
    for name in SYNTHETIC:
        for network in ("lstm", "cnn", "transformer"):
            for seed in (0, 1):
                yield Cell(f"synthetic {name}", f"planted:{name}", network, seed, SLOW.get(network, 90))


def _by_hand() -> Iterator[Cell]:
    """Networks whose weights are set, and those whose parts add up."""
    for algorithm in ALGORITHMS:
        kind = "built transformer" if "transformer" in algorithm else "built recurrent"
        for seed in (0, 1, 2):
            yield Cell(kind, "sst" if seed else "agnews", algorithm, seed)
    for host, texts in {"sst": 90, "agnews": 60}.items():
        for seed in (0, 1, 2):
            yield Cell("additive", host, "average", seed, texts)


def _pretrained() -> Iterator[Cell]:
    """Fine-tuned MiniLM, a family of its own."""
    for rule in ("keyword", "order"):
        yield Cell("pretrained", f"planted:{rule}/sst", "minilm", 0, 36)

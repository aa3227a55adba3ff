"""Influence of training texts: ours and the peers', on a small BiLSTM through the adapter of influence_peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from assay.influence.kronecker import Kronecker
from assay.influence.setting import Method, Setting
from assay.influence.similarity import GradientDot
from assay.influence.tracin import Trak
from benchmarks import influence_peers
from benchmarks.beside.turns import Scores, Text, Way
from benchmarks.influence import ARCHITECTURES, Sizes, setting_of

SIZES = Sizes(train=1000, queries=50, epochs=5)


def ours(method: Method) -> Callable[[Path], Way]:
    return _way(lambda setting: method(setting).scores.tolist())


def theirs(peer: Callable[..., influence_peers.Timed], **options: object) -> Callable[[Path], Way]:
    def asked(setting: Setting) -> Scores:
        told: list[str] = []
        found = list(peer(setting, told, **options).values())
        if not found:
            raise RuntimeError("; ".join(told))
        scores: Scores = found[0][0].scores.tolist()
        return scores

    return _way(asked)


def _way(asked: Callable[[Setting], Scores]) -> Callable[[Path], Way]:
    def begun(folder: Path) -> Way:
        setting, _ = setting_of(ARCHITECTURES["lstm"], SIZES)

        def run(texts: Sequence[Text]) -> Scores:
            return asked(setting)

        return run

    return begun


WAYS = {
    "dot": ours(GradientDot()),
    "trak": ours(Trak()),
    "kronecker": ours(Kronecker()),
    "dattri_dot": theirs(influence_peers.dattri, only="dattri Grad-Dot"),
    "dattri_trak": theirs(influence_peers.dattri, only="dattri TRAK"),
    "kronfluence": theirs(influence_peers.kronfluence, dampings=()),
}

"""A probe of all heads of a transformer: section by section, so that an interrupted one goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import torch

from assay import __version__, progress
from assay.caching import FinishedParts
from assay.data import annotated as mentions
from assay.data import annotated as negation
from assay.data import annotated as treebank
from assay.data import corpora as given
from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Corpus, Example, examples_for
from assay.data.fetch import needed_copy
from assay.errors import AssayError, unknown
from assay.explainers.choice import separated
from assay.files import write_text
from assay.models import recipes, store
from assay.models.hf_body import Body
from assay.models.hf_loading import Opening, encoder, located, opened
from assay.models.hf_models import Pretrained
from assay.models.store import Opened
from assay.probes.heads import PROBES, Pruning, pruned
from assay.probes.heads import probe as measured
from assay.records import versions

FORMAT, FILE = "assay-probe-2", "probe.json"
IMPORTANCE = "importance"
SECTIONS = (*PROBES, IMPORTANCE)
TOGETHER = {"treebank": ("speech", "relations", "pairs"), "coreference": ("coreference",), "negation": ("negation",)}
"""The sections that one reading of the data serves: they are kept together."""

NEEDED = {
    "treebank": ("ud_english_ewt", treebank.TREEBANK),
    "coreference": ("gap", mentions.MENTIONS),
    "negation": ("negation_conan_doyle", negation.NEGATIONS),
}
"""The data of each kind, by name, and their files."""

MOST = 500
"""So many dev and test texts are read for head importance where no limit is set: the curve reads them often."""

Texts = Callable[[Opened], tuple[Sequence[Example], Sequence[Example]]]
"""The dev and the test texts, with labels counted in the classes of a model."""


@dataclass(frozen=True)
class ProbePlan:
    """What is probed: a preset, a folder or a name on the hub; `limit` draws so many sentences of each set."""

    model: str
    sections: tuple[str, ...] = SECTIONS
    limit: int | None = None
    corpus: str | None = None
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.sections:
            if name not in SECTIONS:
                raise unknown("section of a probe", name, SECTIONS)
        if not self.sections:
            raise AssayError(f"Name at least one section of a probe: {', '.join(SECTIONS)}.")
        if self.limit is not None and self.limit < 1:
            raise AssayError(f"A probe needs at least one sentence, not {self.limit}; leave the limit out for all.")


@dataclass(frozen=True)
class Probed:
    """A finished probe as plain numbers, and the ways to look at it."""

    answer: dict[str, Any]

    def report(self, path: str | Path) -> Path:
        """Writes the page, or its Markdown, PDF or JSON, as the name ends in, and says where."""
        from assay.probes.probe_page import document
        from assay.report.save import save

        save(document(self.answer), Path(path))
        return Path(path)

    def __str__(self) -> str:
        from assay.probes.probe_page import headline

        return str(headline(self.answer))


def probe(
    model: str | Path,
    sections: str | Sequence[str] = SECTIONS,
    limit: int | None = None,
    corpus: Any = None,
    device: str = "cpu",
    seed: int = 0,
    out: str | Path | None = None,
) -> Probed:
    """What every attention head of a transformer attends to, against fixed offsets and random controls.

    The model is "minilm", a folder or a name on the hub. Of each set of sentences `limit` are drawn by the seed. Head
    importance needs the texts of a `corpus` that the model classifies. With a folder `out`, results are stored
    there, and an interrupted probe goes on.
    """
    wanted = SECTIONS if sections == "all" else separated(sections) if isinstance(sections, str) else tuple(sections)
    found = None if corpus is None else given.corpus(corpus, seed)
    name = None if found is None else str(corpus) if isinstance(corpus, str | Path) else found.name
    plan = ProbePlan(str(model).removeprefix("hf:"), tuple(dict.fromkeys(wanted)), limit, name, device, seed)
    with nullcontext(out) if out is not None else TemporaryDirectory() as place:
        return Probed(probed(plan, Path(place), None if found is None else partial(labelled, found)))


def labelled(corpus: Corpus, model: Opened) -> tuple[Sequence[Example], Sequence[Example]]:
    """The dev and the test texts of a corpus, with labels counted in the classes of a model."""
    return examples_for(corpus, "dev", model.classes), examples_for(corpus, "test", model.classes)


def probed(plan: ProbePlan, folder: Path, texts: Texts | None = None, command: str | None = None) -> dict[str, Any]:
    """The probe as plain numbers, written into the folder; what was finished there before is not done again."""
    wanted, left_out = at_hand(plan)
    asked = IMPORTANCE in plan.sections
    if asked and texts is None:
        left_out[IMPORTANCE] = "Head importance needs texts with labels; name them with --corpus."
    if not wanted and not (asked and texts):
        raise nothing(left_out)
    name = located(plan.model)
    network, tokeniser = encoder(name, Opening(device=plan.device))
    weights, finished = store.fingerprint(network.inner), FinishedParts(folder)
    identity = {"probe": {"limit": plan.limit, "seed": plan.seed, "format": FORMAT}, "model": weights}
    finished.claim(identity, "a probe of another model, limit or seed, or something else")
    parts = [
        finished.answer(kind, members, partial(measured, network, tokeniser, members, plan.limit, plan.seed))
        for kind, members in wanted.items()
    ]
    if asked and texts is not None:
        try:
            parts.append(_importance(plan, finished, classifier(name, plan.device), texts))
        except AssayError as fault:
            left_out[IMPORTANCE] = str(fault)
            if not parts:
                raise
    whole = _whole(parts) | _about(plan, network, command) | {"left_out": left_out}
    whole["model"]["sha256"] = weights
    write_text(folder / FILE, json.dumps(whole, ensure_ascii=False, allow_nan=False) + "\n")
    return whole


def nothing(left_out: dict[str, str]) -> AssayError:
    """The error where there is not one section to go on with."""
    reasons = " ".join(dict.fromkeys(left_out.values()))
    return AssayError(f"Nothing can be probed here. {reasons}")


def at_hand(plan: ProbePlan) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """The sections whose data are here, by the data that they share, and why each of the others is left out."""
    wanted: dict[str, tuple[str, ...]] = {}
    left_out: dict[str, str] = {}
    for kind, members in TOGETHER.items():
        asked = tuple(name for name in members if name in plan.sections)
        if not asked:
            continue
        name, files = NEEDED[kind]
        try:
            for split in ("dev", "test"):
                needed_copy(files[split], name)
            wanted[kind] = asked
        except AssayError as fault:
            left_out |= dict.fromkeys(asked, str(fault))
    return wanted, left_out


def classifier(name: str, device: str) -> Opened:
    """The model as a classifier whose heads can be gated."""
    model = opened(name, Opening(device=device))
    if not isinstance(model.network, Pretrained):
        raise AssayError("Head importance is for classifiers of the library, not for attention over their words.")
    if model.network.traits.unedited is not None:
        raise AssayError(model.network.traits.unedited)
    return model


def _importance(plan: ProbePlan, finished: FinishedParts, model: Opened, texts: Texts) -> dict[str, Any]:
    """The part of head importance."""
    splits = texts(model)
    asked = [store.fingerprint(model.network), *(recipes.fingerprint(examples) for examples in splits)]
    dev, test = (_rows(plan, model, examples) for examples in splits)
    network = model.network
    assert isinstance(network, Pretrained)

    def make() -> dict[str, Any]:
        with progress.bar() as shown:
            task = shown.add_task("head importance", total=100)
            found = pruned(network, dev, test, Pruning(seed=plan.seed), lambda share: shown.advance(task, 100 * share))
        return {"sections": {IMPORTANCE: {**found, "corpus": plan.corpus}}}

    return finished.answer(IMPORTANCE, asked, make)


def _rows(plan: ProbePlan, model: Opened, examples: Sequence[Example]) -> list[Tokenised]:
    """Some of the texts, drawn by the seed, in the words of the model."""
    size = min(len(examples), plan.limit or MOST)
    chosen = [examples[place] for place in sorted(Random(plan.seed).sample(range(len(examples)), size))]
    return tokenise(chosen, model.tokeniser, model.tokeniser.options.longest)[0]


def _whole(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All sections in their order, the drawn sentences, and the seconds that it took."""
    answers = [part["answer"] for part in parts]
    sections = {name: section for answer in answers for name, section in answer["sections"].items()}
    return {
        "sections": {name: sections[name] for name in SECTIONS if name in sections},
        "examples": next((answer["examples"] for answer in answers if answer.get("examples")), []),
        "seconds": round(sum(part["seconds"] for part in parts), 1),
    }


def _about(plan: ProbePlan, network: Body, command: str | None) -> dict[str, Any]:
    """What is known of the model and of the machine."""
    inner, device = network.inner, network.device
    heads, dtype = int(inner.config.num_attention_heads), str(inner.dtype).removeprefix("torch.")
    return {
        "format": FORMAT,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": command or "assay.probe(...) in Python",
        "versions": {"assay": __version__} | versions(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "plan": asdict(plan),
        "model": {
            "name": plan.model,
            "description": f"{type(inner).__name__}, {network.layers} layers of {heads} heads, {dtype}",
            "parameters": sum(parameter.numel() for parameter in inner.parameters()),
        },
        "layers": network.layers,
        "heads": heads,
    }

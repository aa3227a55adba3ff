"""A probe of a model, its heads and its concepts: section by section, so that an interrupted one goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from assay import __version__, progress
from assay.caching import FinishedParts
from assay.data import annotated, corpora
from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Corpus, Example, examples_for, sample
from assay.data.fetch import needed_copy
from assay.errors import AssayError, unknown
from assay.explainers.choice import separated
from assay.files import write_text
from assay.models import recipes, store
from assay.models.hf_body import Body
from assay.models.hf_loading import Opening, encoder, is_folder, located, opened
from assay.models.hf_models import Pretrained
from assay.models.store import Opened
from assay.models.textmodel import TextModel
from assay.probes.concepts import Tcav, section
from assay.probes.drawings import FILE, FORMAT
from assay.probes.heads import PROBES, Pruning, pruned
from assay.probes.heads import probe as measured
from assay.records import versions
from assay.run import api
from assay.run.reporting import Answered

IMPORTANCE, CONCEPTS = "importance", "concepts"
SECTIONS = (*PROBES, IMPORTANCE, CONCEPTS)
TOGETHER = {"treebank": ("speech", "relations", "pairs"), "coreference": ("coreference",), "negation": ("negation",)}
"""The sections that one reading of the data serves: they are kept together."""

NEEDED = {
    "treebank": ("ud_english_ewt", annotated.TREEBANK),
    "coreference": ("gap", annotated.MENTIONS),
    "negation": ("negation_conan_doyle", annotated.NEGATIONS),
}
"""The data of each kind, by name, and their files."""

MOST = 500
"""So many dev and test texts are read where no limit is set: the curve of head importance reads them often."""

HEADLESS = "Heads are probed in minilm, a folder of Hugging Face or hf:NAME."

Texts = Callable[[Opened], tuple[Sequence[Example], Sequence[Example]]]
"""The dev and the test texts, with labels counted in the classes of a model."""


@dataclass(frozen=True)
class ProbePlan:
    """What is probed: a preset, a folder or a name on the hub; `limit` draws so many sentences of each set.

    `concepts` are the names of those that are given by examples, and `level` is what moves towards them.
    """

    model: str
    sections: tuple[str, ...] = SECTIONS
    limit: int | None = None
    corpus: str | None = None
    device: str = "cpu"
    seed: int = 0
    concepts: tuple[str, ...] = ()
    level: str | None = None

    def __post_init__(self) -> None:
        for name in self.sections:
            if name not in SECTIONS:
                raise unknown("section of a probe", name, SECTIONS)
        if not self.sections:
            raise AssayError(f"Name at least one section of a probe: {', '.join(SECTIONS)}.")
        if self.limit is not None and self.limit < 1:
            raise AssayError(f"A probe needs at least one sentence, not {self.limit}; leave the limit out for all.")

    @property
    def headless(self) -> bool:
        """Whether the model is one of assay's own, in which there are no heads to probe."""
        return Path(self.model).is_dir() and not is_folder(Path(self.model))


class Probed(Answered):
    """A finished probe."""

    @property
    def page(self) -> Any:
        from assay.probes import probe_page as page

        return page


def probe(
    model: str | Path,
    sections: str | Sequence[str] = SECTIONS,
    limit: int | None = None,
    corpus: Any = None,
    device: str = "cpu",
    seed: int = 0,
    out: str | Path | None = None,
    concepts: Mapping[str, Sequence[str]] | None = None,
    level: str | None = None,
) -> Probed:
    """What every attention head of a transformer attends to, against fixed offsets and random controls.

    The model is "minilm", a folder or a name on the hub. Of each set of sentences `limit` are drawn by the seed. Head
    importance needs the texts of a `corpus` that the model classifies. With a folder `out`, results are stored
    there, and an interrupted probe goes on.

    `concepts` are texts that show each concept: of any model of such a corpus it is tested whether its classes depend
    on them (TCAV), moving the hidden states of a `level`: "embedding", "layer 0" and so on, "hidden", or the highest.
    """
    wanted = SECTIONS if sections == "all" else separated(sections) if isinstance(sections, str) else tuple(sections)
    found = None if corpus is None else corpora.corpus(corpus, seed)
    name = None if found is None else str(corpus) if isinstance(corpus, str | Path) else found.name
    chosen = tuple(dict.fromkeys(wanted))
    given = concepts or {}
    plan = ProbePlan(str(model).removeprefix("hf:"), chosen, limit, name, device, seed, tuple(given), level)
    texts = None if found is None else partial(labelled, found)
    with nullcontext(out) if out is not None else TemporaryDirectory() as place:
        return Probed(probed(plan, Path(place), texts, concepts=given))


def labelled(corpus: Corpus, model: Opened) -> tuple[Sequence[Example], Sequence[Example]]:
    """The dev and the test texts of a corpus, with labels counted in the classes of a model."""
    return examples_for(corpus, "dev", model.classes), examples_for(corpus, "test", model.classes)


def probed(
    plan: ProbePlan,
    folder: Path,
    texts: Texts | None = None,
    command: str | None = None,
    concepts: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """The probe as plain numbers, written into the folder; what was finished there before is not done again."""
    wanted, left_out = at_hand(plan)
    left_out |= _unfit(plan, texts is not None)
    labelled = [each for each in (IMPORTANCE, CONCEPTS) if each in plan.sections and each not in left_out]
    if not wanted and not labelled:
        raise nothing(left_out)
    name, options = located(plan.model), Opening(device=plan.device)
    read = None if plan.headless else encoder(name, options)
    network: TextModel = read[0] if read else api.stored(Path(name), plan.device).network
    weights = store.fingerprint(network.inner if isinstance(network, Body) else network)
    finished = FinishedParts(folder)
    identity = {"probe": {"limit": plan.limit, "seed": plan.seed, "format": FORMAT}, "model": weights}
    finished.claim(identity, "a probe of another model, limit or seed, or something else")
    parts = [
        finished.answer(kind, members, partial(measured, *read, members, plan.limit, plan.seed))
        for kind, members in wanted.items()
        if read
    ]
    for each in labelled:
        assert texts is not None
        try:
            if each == IMPORTANCE:
                parts.append(_importance(plan, finished, classifier(name, plan.device), texts))
            else:
                model = api.stored(Path(name), plan.device) if plan.headless else opened(name, options)
                parts.append(_concepts(plan, finished, model, texts, concepts or {}))
        except AssayError as fault:
            left_out[each] = str(fault)
            if not parts and each == labelled[-1]:
                raise
    whole = _whole(parts) | _about(plan, network, command) | {"left_out": left_out}
    whole["model"]["sha256"] = weights
    write_text(folder / FILE, json.dumps(whole, ensure_ascii=False, allow_nan=False) + "\n")
    return whole


def _unfit(plan: ProbePlan, labelled: bool) -> dict[str, str]:
    """Why sections that need texts with labels are left out, beside those of a model without heads."""
    left_out = {}
    if IMPORTANCE in plan.sections and not labelled:
        left_out[IMPORTANCE] = "Head importance needs texts with labels; name them with --corpus."
    if CONCEPTS in plan.sections and not plan.concepts:
        left_out[CONCEPTS] = "Concepts are given by examples; name files that hold them with --concept."
    elif CONCEPTS in plan.sections and not labelled:
        left_out[CONCEPTS] = "Concepts are told from other texts with labels; name them with --corpus."
    if plan.headless:
        left_out |= {name: HEADLESS for name in plan.sections if name != CONCEPTS}
    return left_out


def nothing(left_out: dict[str, str]) -> AssayError:
    """The error where there is not one section to go on with."""
    reasons = " ".join(dict.fromkeys(left_out.values()))
    return AssayError(f"Nothing can be probed here. {reasons}")


def at_hand(plan: ProbePlan) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """The sections whose data are here, by the data that they share, and why each of the others is left out."""
    wanted: dict[str, tuple[str, ...]] = {}
    left_out: dict[str, str] = {}
    for kind, members in TOGETHER.items():
        asked = tuple(name for name in members if name in plan.sections and not plan.headless)
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


def _concepts(
    plan: ProbePlan, finished: FinishedParts, model: Opened, texts: Texts, concepts: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The part of concepts: told from dev texts, and asked of the test texts of each class."""
    given = {name: [Example(text, 0) for text in shown] for name, shown in concepts.items()}
    others, asked = (_drawn(plan, examples) for examples in texts(model))
    about = [recipes.fingerprint(examples) for examples in (*given.values(), others, asked)]
    options = Tcav(level=plan.level, seed=plan.seed)

    def make() -> dict[str, Any]:
        return {"sections": {CONCEPTS: {**section(model, given, others, asked, options), "corpus": plan.corpus}}}

    return finished.answer(CONCEPTS, [plan.level, list(given), store.fingerprint(model.network), *about], make)


def _drawn(plan: ProbePlan, examples: Sequence[Example]) -> list[Example]:
    """Some of the texts, drawn by the seed."""
    return list(sample(examples, plan.limit or MOST, plan.seed))


def _rows(plan: ProbePlan, model: Opened, examples: Sequence[Example]) -> list[Tokenised]:
    """Some of the texts in the words of the model."""
    return tokenise(_drawn(plan, examples), model.tokeniser, model.tokeniser.options.longest)[0]


def _whole(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All sections in their order, the drawn sentences, and the seconds that it took."""
    answers = [part["answer"] for part in parts]
    sections = {name: section for answer in answers for name, section in answer["sections"].items()}
    return {
        "sections": {name: sections[name] for name in SECTIONS if name in sections},
        "examples": next((answer["examples"] for answer in answers if answer.get("examples")), []),
        "seconds": round(sum(part["seconds"] for part in parts), 1),
    }


def _about(plan: ProbePlan, network: TextModel, command: str | None) -> dict[str, Any]:
    """What is known of the model and of the machine."""
    device = network.device
    layers = heads = 0
    inner: torch.nn.Module = network
    description = f"{type(network).__name__} of assay"
    if isinstance(network, Body):
        inner, layers, heads = network.inner, network.layers, int(network.inner.config.num_attention_heads)
        dtype = str(network.inner.dtype).removeprefix("torch.")
        description = f"{type(inner).__name__}, {layers} layers of {heads} heads, {dtype}"
    return {
        "format": FORMAT,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": command or "assay.probe(...) in Python",
        "versions": {"assay": __version__} | versions(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "plan": asdict(plan),
        "model": {
            "name": plan.model,
            "description": description,
            "parameters": sum(parameter.numel() for parameter in inner.parameters()),
        },
        "layers": layers,
        "heads": heads,
    }

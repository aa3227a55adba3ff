"""What a model of this study learns from: more of a planted corpus, easier texts, and texts that close other routes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

from assay.data.batches import tokenise
from assay.data.examples import Corpus, Example, joined
from assay.data.planted import PLANTED
from assay.models import store
from assay.models.config import Training
from assay.models.fit import fit
from assay.models.recipes import Recipe
from assay.models.store import Trained

APART = 1000
"""Seeds of corpora that belong to one seed of the study: at most so many."""

Make = Callable[[int], Corpus]
Vary = Callable[[Random, Example], Example | None]
"""Another training text made from one, or None."""


@dataclass(frozen=True)
class Lesson:
    """How one planted corpus is learnt: with which recipe, from the training splits of how many seeds.

    A model may learn the corpora `together` at once, which share their classes, with shorter texts from `easier` (and
    so many seeds of each): what one teaches helps the others. Where the label is
    the parity of two words, neither says anything alone, and small models stay at chance: two of three `hard` texts
    are left out, so that one of the words says something. `vary` makes more texts, each from every fourth one.
    A `second` training goes on with every fourth text, and a blank one for every third of these: until then a model may
    guess without some deciding sentences.
    """

    recipe: Recipe
    seeds: int = 1
    together: tuple[str, ...] = ()
    easier: tuple[tuple[Make, int], ...] = ()
    hard: Callable[[Example], bool] | None = None
    vary: tuple[Vary, ...] = ()
    second: Training | None = None

    def corpus(self, name: str, seed: int = 0) -> Corpus:
        """The test texts of the seed's first corpus, with the training and dev texts of this lesson; pairs are joined.

        No two seeds share a corpus.
        """
        names, first = self.together or (name,), seed * APART
        firsts = {each: taught(PLANTED[each], first) for each in names}
        tested = {example.text for first in firsts.values() for example in (*first.dev, *first.test)}
        random = Random(names[0])
        texts = list(distinct(first, *((PLANTED[each], self.seeds) for each in names), *self.easier))
        if self.hard is not None:
            texts = [example for example in texts if not self.hard(example) or random.random() < 1 / 3]
        texts += [varied for vary in self.vary for example in texts[::4] if (varied := vary(random, example))]
        dev = tuple(example for first in firsts.values() for example in first.dev)
        return replace(firsts[name], train=tuple(example for example in texts if example.text not in tested), dev=dev)


def gone_on(model: Trained, corpus: Corpus, training: Training, folder: Path) -> Trained:
    """The model after its second training; it is kept in the folder."""
    if (folder / store.CARD).exists():
        return store.load(folder, str(model.device))
    random, blank = Random(corpus.name), Blank(len(corpus.classes))
    some = corpus.train[::4]
    texts = [*some, *filter(None, (blank(random, example) for example in some[::3]))]
    rows, dev = (tokenise(split, model.tokeniser, model.tokeniser.options.longest)[0] for split in (texts, corpus.dev))
    fit(model.network, rows, dev, training)
    store.save(model, folder)
    return model


@cache  # several corpora may be learnt from the same texts, which take a minute to write
def distinct(first: int, *sources: tuple[Make, int]) -> tuple[Example, ...]:
    """The training texts of so many seeds of each source from the first on, each once."""
    corpora = (taught(make, seed) for make, seeds in sources for seed in range(first, first + seeds))
    return tuple({example.text: example for corpus in corpora for example in corpus.train}.values())


def taught(make: Make, seed: int) -> Corpus:
    """The corpus as texts without queries."""
    corpus = make(seed)
    return joined(corpus) if corpus.train[0].query else corpus


@dataclass(frozen=True)
class Blank:
    """A text without a deciding word, the last or any, and with a label by chance (docs/decisions/0003).

    Every other time a word that occurs nowhere else stands in its place, so that a model learns to make nothing of
    unknown words.
    """

    classes: int
    last: bool = False

    def __call__(self, random: Random, example: Example) -> Example | None:
        if not example.evidence:
            return None
        start, end = example.evidence[-1] if self.last else random.choice(example.evidence)
        nonce = f"zz{random.randrange(10**9)}" if random.random() < 0.5 else ""
        text = example.text[:start] + nonce + example.text[end:]
        return Example(text, random.randrange(self.classes))


def one_negator_less(random: Random, example: Example) -> Example | None:
    """A negation with one acting negator left out, or "everybody" for "nobody", and the other label.

    In the corpus some verbs stand only with so many negators; here they do not.
    """
    *negators, _ = example.evidence or ()
    if not negators:
        return None
    start, end = random.choice(negators)
    instead = "everybody" if example.text[start:end].lower() == "nobody" else ""
    return Example(example.text[:start] + instead + example.text[end:], 1 - example.label)

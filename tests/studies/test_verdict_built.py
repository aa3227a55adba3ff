"""Networks set by hand do what their rule says, for the words that are said to decide and for nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import combinations
from pathlib import Path
from random import Random

import pytest
import torch
from torch import Tensor

from assay.data.batches import Tokenised, collate, tokenise
from assay.data.coded import NO_CODE, WORDS
from assay.data.examples import Corpus, Example
from assay.errors import AssayError
from assay.models.store import Trained, fingerprint, load, save
from assay.types import Batch, Output
from studies.verdict.built import ALGORITHMS, additive, built, parts
from tests.contracts.covering import chosen
from tests.data.test_coded import host

SEEDS = (0, 1, 2)  # a recurrent network reads off both directions, off that ahead or off that behind


def some(algorithms: Iterable[str] = ALGORITHMS, turn: int = 0) -> pytest.MarkDecorator:
    """Every algorithm with every seed, of which all but one seed an algorithm, another for each turn, are slow."""
    pairs = [(algorithm, str(seed)) for algorithm in algorithms for seed in SEEDS]
    cover = chosen(pairs, 1, turn)
    return pytest.mark.parametrize(
        ("algorithm", "seed"),
        [pytest.param(one, int(seed), marks=() if (one, seed) in cover else pytest.mark.slow) for one, seed in pairs],
    )


@cache
def made(algorithm: str, seed: int) -> tuple[Trained, Corpus]:
    return built(algorithm, host(), seed)


def rows_of(algorithm: str, seed: int) -> list[Tokenised]:
    model, corpus = made(algorithm, seed)
    return tokenise(corpus.test, model.tokeniser, 1000)[0]


def decided(rows: list[Tokenised]) -> list[Tokenised]:
    return [row for row in rows if row.label != NO_CODE]


def truth(row: Tokenised) -> Tensor:
    assert row.truth is not None
    return row.truth


def answered(model: Trained, batch: Batch) -> Output:
    with torch.no_grad():
        return model.network(model.network.embed(batch), batch)


def probabilities(model: Trained, texts: list[Tensor]) -> Tensor:
    """The probabilities [N, C] of texts given as word ids."""
    width = max(map(len, texts))
    ids = torch.stack([torch.nn.functional.pad(text, (0, width - len(text))) for text in texts])
    mask = torch.arange(width) < torch.tensor([len(text) for text in texts])[:, None]
    return answered(model, Batch(ids, mask, torch.zeros(len(texts), dtype=torch.long))).probabilities


def ordinary(model: Trained, size: int, seed: int = 0) -> Tensor:
    """So many words at random that are no code."""
    words = [place for place, word in enumerate(model.tokeniser.vocabulary) if place > 3 and word not in WORDS]
    return torch.tensor(Random(seed).choices(words, k=size))


@some(turn=0)
def test_every_text_is_answered_as_its_label_says(algorithm: str, seed: int) -> None:
    model, corpus = made(algorithm, seed)
    rows = rows_of(algorithm, seed)
    assert len(rows) == len(corpus.test) > 100 and {row.label for row in rows} == {0, 1, 2}
    batch = collate(rows)
    right = answered(model, batch).probabilities.gather(1, batch.labels[:, None])
    assert right.min() >= 0.9
    assert next(model.network.parameters()).dtype == torch.float32
    for example in (*corpus.train, *corpus.dev, *corpus.test):
        assert example.planted and example.evidence is not None and bool(example.evidence) == (example.label != NO_CODE)


@some(turn=1)
def test_other_words_decide_nothing_and_without_the_evidence_there_is_no_code(algorithm: str, seed: int) -> None:
    model, rows = made(algorithm, seed)[0], decided(rows_of(algorithm, seed))
    labels = torch.tensor([row.label for row in rows])
    drawn = [ordinary(model, len(row.ids), row.index) for row in rows]
    kept = [torch.where(truth(row), row.ids, other) for row, other in zip(rows, drawn, strict=True)]
    gone = [torch.where(truth(row), other, row.ids) for row, other in zip(rows, drawn, strict=True)]
    assert (probabilities(model, kept).argmax(-1) == labels).float().mean() >= 0.98
    assert (probabilities(model, gone).argmax(-1) == NO_CODE).float().mean() >= 0.98


@some(turn=2)
def test_the_length_of_a_text_decides_nothing(algorithm: str, seed: int) -> None:
    model, rows = made(algorithm, seed)[0], rows_of(algorithm, seed)[:30]
    labels = torch.tensor([row.label for row in rows])
    for before, after in ((390, 0), (150, 240)):
        around = [ordinary(model, before + after, row.index) for row in rows]
        longer = [torch.cat([o[:before], row.ids, o[before:]]) for row, o in zip(rows, around, strict=True)]
        assert (probabilities(model, longer).argmax(-1) == labels).all()


@some([name for name in ALGORITHMS if not name.startswith("lexicon")], 3)
def test_code_words_decide_together(algorithm: str, seed: int) -> None:
    model = made(algorithm, seed)[0]
    rows = [row for row in decided(rows_of(algorithm, seed)) if truth(row).sum() == 2]
    labels = torch.tensor([row.label for row in rows])
    texts = [row.ids.clone() for row in rows]
    for text, row in zip(texts, rows, strict=True):
        first, second = truth(row).nonzero().flatten().tolist()
        if algorithm.startswith("order"):
            text[[first, second]] = text[[second, first]]
        else:
            text[first] = ordinary(model, 1, row.index)
    changed = torch.zeros_like(labels) if algorithm.startswith("pair") else 3 - labels
    assert (probabilities(model, texts).argmax(-1) == changed).float().mean() >= 0.98


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_seeds_give_other_networks_and_the_same_seed_the_same(algorithm: str) -> None:
    model, corpus = made(algorithm, 1)
    again, same = built(algorithm, host(), 1)
    assert fingerprint(again.network) == fingerprint(model.network) and same == corpus
    other, another = made(algorithm, 4)
    assert another.name == corpus.name and another != corpus
    for (name, one), two in zip(model.network.named_parameters(), other.network.state_dict().values(), strict=True):
        if one.shape == two.shape and "bias" not in name and "norm" not in name and "before" not in name:
            assert (one - two).abs().max() > 0.01, name


@pytest.mark.parametrize("algorithm", ["negator-gru", "pair-transformer"])
def test_a_stored_network_answers_alike(algorithm: str, tmp_path: Path) -> None:
    model, rows = made(algorithm, 0)[0], rows_of(algorithm, 0)
    save(model, tmp_path)
    read = load(tmp_path)
    batch = collate(rows)
    assert torch.equal(answered(read, batch).logits, answered(model, batch).logits)


def test_an_algorithm_that_there_is_not_is_refused() -> None:
    with pytest.raises(AssayError, match="order-lstm"):
        built("ordre-lstm", host(), 0)


def opinions() -> Corpus:
    """Texts of four to fifteen of sixty words, each of which is for or against."""
    random = Random(0)
    weights = {f"w{place}": random.gauss(0, 1) for place in range(60)}
    texts = [random.choices([*weights], k=random.randint(4, 15)) for _ in range(1200)]
    rows = tuple(Example(" ".join(text), int(sum(map(weights.__getitem__, text)) > 0)) for text in texts)
    return Corpus("opinions", ("against", "for"), rows[:800], rows[800:1000], rows[1000:])


@cache
def explained(seed: int) -> tuple[Trained, Corpus, list[Tokenised]]:
    model, corpus = additive(opinions(), seed)
    return model, corpus, tokenise(corpus.test, model.tokeniser, 1000)[0]


@pytest.mark.parametrize("seed", [0, 1])
def test_parts_of_an_additive_model_are_all_there_is(seed: int) -> None:
    model, corpus, rows = explained(seed)
    assert len(rows) == len(corpus.test) > 50 and {row.label for row in rows} == {0, 1}
    batch = collate(rows)
    answer = answered(model, batch)
    torch.testing.assert_close(answer.attention[-1], batch.mask / batch.lengths[:, None])
    means = torch.stack([parts(model, row.ids).mean(0) for row in rows])
    torch.testing.assert_close(answer.logits.double(), means, atol=1e-5, rtol=1e-5)
    assert torch.equal(answer.logits.argmax(-1), batch.labels)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_evidence_of_an_additive_model_is_a_smallest_set_that_decides(seed: int) -> None:
    model, _, rows = explained(seed)
    tried = [row for row in rows if len(row.ids) <= 10]
    assert len(tried) > 20 and len({int(truth(row).sum()) for row in tried}) > 1
    for row in tried:
        marked, words = truth(row), range(len(row.ids))
        size = int(marked.sum())
        assert 1 <= size <= len(row.ids) / 3
        assert probabilities(model, [row.ids[~marked]]).argmax(-1) != row.label
        smaller = [gone for k in range(size) for gone in combinations(words, k)]
        left = [row.ids[[word for word in words if word not in gone]] for gone in smaller]
        assert (probabilities(model, left).argmax(-1) == row.label).all()
        equal = [[word for word in words if word not in gone] for gone in combinations(words, size)]
        chances = probabilities(model, [row.ids[kept] for kept in equal])[:, row.label]
        lowest = equal[int(chances.argmin())]
        assert lowest == (~marked).nonzero().flatten().tolist()

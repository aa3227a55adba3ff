"""Why a model looks at a token: predicted against what training again really does to the salience."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from assay.data.batches import Tokenised, collate, tokenise
from assay.data.examples import Example
from assay.errors import AssayError
from assay.influence import targets
from assay.influence.curvature import GaussNewton, flattened
from assay.influence.dual import DualGaussNewton
from assay.influence.functions import InfluenceFunctions, Inverse
from assay.influence.hybrid import SALIENCES, Hybrid, Pair, deletion, gradient, salience_gradients, saliences, without
from assay.influence.kronecker import Kronecker
from assay.influence.setting import Setting
from assay.influence.similarity import Vectors, train_products
from assay.influence.solvers import ConjugateGradients
from assay.models.textmodel import TextModel
from assay.types import Batch, Edit, Output
from tests import builders, pretrained

WORDS, SIZE, HIDDEN, CLASSES, TEXTS, DECAY = 15, 3, 5, 3, 60, 2e-2
PAIR: Pair = (0, 1)


class Tiny(TextModel):
    """Embeddings, a layer of tanh over each, their mean, and a linear decoder; 83 parameters."""

    cascade = ("decoder", "layer", "embedding")

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, SIZE)
        self.layer = nn.Linear(SIZE, HIDDEN)
        self.decoder = nn.Linear(HIDDEN, CLASSES)

    classes, paired, ordinary = CLASSES, False, 0  # type: ignore[assignment]

    @property
    def facts(self) -> dict[str, str]:
        return {"description": "tiny", "shape": "flat", "items": "words"}

    def embed(self, batch: Batch) -> Tensor:
        embedded: Tensor = self.embedding(batch.ids)
        return embedded

    def forward(self, x: Tensor, batch: Batch, edit: Edit | None = None) -> Output:
        shares = batch.mask / batch.mask.sum(-1, keepdim=True)
        return Output(self.decoder((self.layer(x).tanh() * shares[..., None]).sum(1)), (shares,))

    def part(self, name: str) -> nn.Module:
        part: nn.Module = getattr(self, name)
        return part


def texts() -> list[Tokenised]:
    """Random words of three kinds; the label is the kind of most of them, with some luck."""
    random = np.random.default_rng(0)
    rows = []
    for index in range(TEXTS):
        ids = torch.from_numpy(random.integers(0, WORDS, random.integers(2, 6)))
        label = int((np.bincount(ids % CLASSES, minlength=CLASSES) + random.normal(size=CLASSES)).argmax())
        rows.append(Tokenised(index, ids, torch.zeros(len(ids), 2, dtype=torch.int32), torch.zeros_like(ids), label))
    return rows


def solved(curvature: Tensor, vectors: Tensor) -> Tensor:
    """The inverse times each vector; what the loss leaves open, how embeddings are turned, stays as it is."""
    values, axes = torch.linalg.eigh(curvature)
    along = (axes.mT @ vectors[..., None]).squeeze(-1) / values.abs() * (values.abs() > 1e-9)
    return (axes @ along[..., None]).squeeze(-1)


class Fitted:
    """The tiny model at a minimum of its weighted loss, by Newton's method over all parameters side by side."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.network = Tiny().double().eval()
        self.rows = texts()
        self.batch = collate(self.rows, CLASSES)
        self.names = {name: each.shape for name, each in self.network.named_parameters()}
        start = nn.utils.parameters_to_vector(self.network.parameters()).detach()
        self.minimum = self.refit(torch.ones(1, TEXTS).double(), start)[0]
        nn.utils.vector_to_parameters(self.minimum, self.network.parameters())

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        parts = flat.split([shape.numel() for shape in self.names.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self.names.items(), parts, strict=True)}

    def logits(self, flat: Tensor, batch: Batch) -> Tensor:
        parameters = self.named(flat)
        x = functional_call(self.network.embedding, {"weight": parameters["embedding.weight"]}, (batch.ids,))
        answer: Tensor = functional_call(self.network, parameters, (x, batch)).logits
        return answer

    def objective(self, flat: Tensor, weights: Tensor) -> Tensor:
        losses = nn.functional.cross_entropy(self.logits(flat, self.batch), self.batch.labels, reduction="none")
        return losses @ weights / TEXTS + DECAY / 2 * flat.square().sum()

    def hessian(self) -> Tensor:
        made: Tensor = torch.func.hessian(self.objective)(self.minimum, torch.ones(TEXTS).double())
        return made

    def refit(self, weights: Tensor, start: Tensor) -> Tensor:
        """The minima near `start` under each row of weights, by steps of Newton's method that go down."""
        value = torch.func.vmap(self.objective)
        gradients = torch.func.vmap(torch.func.grad(self.objective))
        curvatures = torch.func.vmap(torch.func.hessian(self.objective), chunk_size=6)
        flat = start.repeat(len(weights), 1)
        left = torch.arange(len(weights))
        for _ in range(100):
            gradient = gradients(flat[left], weights[left])
            far = gradient.norm(dim=-1) > 1e-11
            left, gradient = left[far], gradient[far]
            if not len(left):
                return flat
            own = weights[left]
            step = solved(curvatures(flat[left], own), gradient)
            before = value(flat[left], own) + 1e-15
            while (up := value(flat[left] - step, own) > before).any():
                step = torch.where(up[:, None], step / 2, step)
            flat[left] -= step
        raise AssertionError("no minimum was found")

    def salience(self, flat: Tensor, pair: Pair) -> float:
        """‖∂S/∂x_t‖, written down once more."""
        row, token = pair
        batch = collate([self.rows[row]], CLASSES)
        parameters = self.named(flat)
        x = parameters["embedding.weight"][batch.ids].detach().requires_grad_()
        logits = functional_call(self.network, parameters, (x, batch)).logits[0]
        odds = logits[1] - torch.stack([logits[0], logits[2]]).logsumexp(0)
        return float(torch.autograd.grad(odds, x)[0][0, token].norm())


@cache
def fitted() -> Fitted:
    return Fitted()


def setting(queries: int = 3) -> Setting:
    model = fitted()
    decay = dict.fromkeys(model.names, DECAY)
    asked = np.ones(queries, dtype=int)
    return Setting(model.network, model.rows, model.rows[:queries], asked, "margin", decay=decay)


def inverse(given: Setting, vectors: Vectors) -> Vectors:
    """The whole curvature, inverted."""
    model = fitted()
    flat = torch.cat([each.flatten(1) for each in vectors.values()], dim=1)
    parts = solved(model.hessian().expand(len(flat), -1, -1), flat).split(
        [shape.numel() for shape in model.names.values()], dim=1
    )
    return {name: part.reshape(-1, *shape) for (name, shape), part in zip(model.names.items(), parts, strict=True)}


def test_it_is_the_gradient_of_retraining_with_another_weight() -> None:
    model, given = fitted(), setting()
    scores = Hybrid(inverse).scores(given, Hybrid(inverse).solved(given, [PAIR]))[0]
    rows, steps = (3, 11, 40), (0.2, 0.1, 1e-3)
    weights = torch.ones(3, 3, 2, TEXTS).double()
    for index, row in enumerate(rows):
        for number, step in enumerate(steps):
            weights[index, number, :, row] += torch.tensor([step, -step])
    after = [model.salience(each, PAIR) for each in model.refit(weights.flatten(0, 2), model.minimum)]
    above, below = np.array(after).reshape(3, 3, 2).transpose(2, 0, 1)
    gradients = (above - below) / (2 * np.array(steps))
    errors = np.abs(gradients + scores[list(rows), None]) / np.abs(gradients)
    assert errors[:, 2].max() < 1e-6
    np.testing.assert_allclose(errors[:, 0] / errors[:, 1], 4, rtol=0.2)  # it falls with the square of the step


def test_it_tells_what_leaving_out_does_to_the_most_salient_tokens() -> None:
    model, given = fitted(), setting(8)
    found = Hybrid(inverse)(given)
    left = model.refit(1 - torch.eye(TEXTS).double(), model.minimum)
    for scores, pair in zip(found.scores, enumerate(found.notes["tokens"]), strict=True):
        real = np.array([model.salience(each, pair) for each in left]) - model.salience(model.minimum, pair)
        assert np.corrcoef(scores, real)[0, 1] > 0.9


def test_pairs_together_are_pairs_one_by_one() -> None:
    given = setting()
    pairs = [(2, 1), (0, 0), (0, 1), (1, 0)]
    together = salience_gradients(given, pairs)
    for number, pair in enumerate(pairs):
        alone = salience_gradients(given, [pair])
        for name, each in alone.items():
            torch.testing.assert_close(together[name][number], each[0], rtol=1e-12, atol=1e-14)


def test_how_embeddings_are_turned_changes_nothing() -> None:
    given, pairs = setting(), [(0, 0), (2, 1)]
    turned = deepcopy(given.network)
    turn = torch.linalg.qr(torch.randn(SIZE, SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))[0]
    with torch.no_grad():
        turned.embedding.weight.copy_(given.network.embedding.weight @ turn)
        turned.layer.weight.copy_(given.network.layer.weight @ turn)
    other = replace(given, network=turned)
    exact = Hybrid(DualGaussNewton(1e-3, "plain").inverse)
    expected = exact.scores(given, exact.solved(given, pairs))
    np.testing.assert_allclose(exact.scores(other, exact.solved(other, pairs)), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    ("inverted", "tolerance"),
    [
        (DualGaussNewton(1e-3, "plain").inverse, 1e-9),
        (InfluenceFunctions(ConjugateGradients(tolerance=1e-10), damping=1e-3).inverse, 1e-7),
    ],
    ids=["dual", "conjugate gradients"],
)
def test_the_inverse_is_that_of_the_whole_matrix(inverted: Inverse, tolerance: float) -> None:
    given = setting()
    vectors = salience_gradients(given, [(0, 0), (2, 1)])
    curvature = GaussNewton(given).dense() + 1e-3 * torch.eye(len(fitted().minimum)).double()
    expected = torch.linalg.solve(curvature, flattened(vectors).T).T
    found = flattened(inverted(given, vectors))
    assert (found - expected).norm() < tolerance * expected.norm()


def test_layer_by_layer_it_is_still_an_inverse_of_the_same_kind() -> None:
    given, pairs = setting(), [(0, 0), (2, 1)]
    exact, near = (Hybrid(each) for each in (DualGaussNewton().inverse, Kronecker().inverse))
    one, other = (each.scores(given, each.solved(given, pairs)).ravel() for each in (exact, near))
    assert np.corrcoef(one, other)[0, 1] > 0.8


def test_a_token_of_a_training_text_counts_for_what_the_text_has_with_it_and_not_without() -> None:
    model, given = fitted(), setting()
    exact = Hybrid(inverse)
    answer = exact.explain(given, 1, most=2, top=3)
    start = model.minimum.clone().requires_grad_()

    def influence(text: Tokenised, solution: Tensor) -> float:
        batch = collate([text], CLASSES)
        loss = nn.functional.cross_entropy(model.logits(start, batch), batch.labels)
        return float(torch.autograd.grad(loss, start)[0] @ solution) / TEXTS

    for token in answer.tokens:
        (solution,) = flattened(exact.solved(given, [(1, token.position)]))
        assert len(token.evidence) == 3
        for each in token.evidence:
            row = given.train[each.row]
            whole = influence(row, solution)
            rest = [influence(without(row, index), solution) for index in range(len(row.ids))]
            assert each.score == pytest.approx(whole, rel=1e-9)
            np.testing.assert_allclose(each.tokens, whole - np.array(rest), rtol=1e-7, atol=1e-12)
    assert answer.tokens[0].salience >= answer.tokens[1].salience


def test_examples_come_in_the_order_of_what_they_did() -> None:
    given = setting()
    exact = Hybrid(inverse)
    answer = exact.explain(given, 2, tokens=[1], top=TEXTS)
    scores = exact.scores(given, exact.solved(given, [(2, 1)]))[0]
    assert [each.row for each in answer.tokens[0].evidence] == [row for row in np.argsort(scores) if scores[row] < 0]


def test_the_first_order_of_a_token_is_a_derivative() -> None:
    given, indices = setting(), [4, 7]
    vectors = salience_gradients(given, [(0, 0), (2, 1)])
    found = gradient(given, vectors, indices)
    network, step = given.network, 1e-5
    for scores, index in zip(found, indices, strict=True):
        batch = collate([given.train[index]], CLASSES)

        def along(sign: int, token: int, batch: Batch = batch) -> Tensor:
            x = network.embed(batch)
            move = torch.zeros_like(x)
            move[0, token] = x[0, token].detach() * sign * step
            loss = targets.loss(network(x + move, batch).logits, batch.labels).sum()
            gradients = torch.autograd.grad(loss, list(network.parameters()))
            return flattened(vectors) @ torch.cat([each.flatten() for each in gradients])

        for token in range(len(given.train[index].ids)):
            expected = (along(1, token) - along(-1, token)) / (2 * step) / TEXTS
            np.testing.assert_allclose(scores[:, token], expected, rtol=1e-6, atol=1e-10)


NETWORKS: dict[str, Callable[[], tuple[TextModel, list[Tokenised]]]] = {
    "lstm": lambda: (builders.kind("lstm", classes=3), rows_of(builders.batch((4, 3)))),
    "transformer": lambda: (builders.kind("transformer", classes=3), rows_of(builders.batch((4, 3)))),
    "bert": lambda: (pretrained.pretrained("bert"), pieces_of(("not a good film", "very dull"))),
}


def rows_of(batch: Batch) -> list[Tokenised]:
    return [
        Tokenised(index, ids[:length], torch.zeros(int(length), 2).int(), torch.zeros_like(ids[:length]), 0)
        for index, (ids, length) in enumerate(zip(batch.ids, batch.lengths, strict=True))
    ]


def pieces_of(given: tuple[str, ...]) -> list[Tokenised]:
    return tokenise([Example(text, 0) for text in given], pretrained.tokeniser(), 60)[0]


@pytest.mark.parametrize("kind", SALIENCES)
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_salience_are_those_of_finite_differences(name: str, kind: str) -> None:
    network, rows = NETWORKS[name]()
    given = Setting(network, rows, rows, np.array([1, 2]))
    pairs = [(0, 2), (1, 1)]
    found = flattened(salience_gradients(given, pairs, kind))
    start = nn.utils.parameters_to_vector(network.parameters()).detach()
    direction = torch.randn(len(start), dtype=start.dtype, generator=torch.Generator().manual_seed(1))
    step = 1e-5
    sides = []
    for sign in (1, -1):
        nn.utils.vector_to_parameters(start + sign * step * direction, network.parameters())
        sides.append(np.array([saliences(given, kind)[query][index] for query, index in pairs]))
    expected = (sides[0] - sides[1]) / (2 * step)
    np.testing.assert_allclose((found @ direction).numpy(), expected, rtol=1e-5, atol=1e-9)


def test_integrated_gradients_add_up() -> None:
    network, rows = NETWORKS["lstm"]()
    given = Setting(network, rows, rows, np.array([1, 2]))
    for index, found in enumerate(saliences(given, "integrated_gradient")):
        batch = collate([rows[index]], 3)
        x = network.embed(batch).detach()
        ends = network(torch.cat([x, 0 * x]), batch[torch.tensor([0, 0])]).logits.detach()
        odds = targets.margin(ends, torch.tensor([index + 1] * 2))
        assert found.sum() == pytest.approx(float(odds[0] - odds[1]), rel=1e-3)


def test_the_answer_is_plain_words_and_numbers() -> None:
    given = setting()
    names = ["none", "some", "all"]
    answer = Hybrid(inverse).explain(given, 0, most=2).json(lambda row: f"text {row}", "the query", names)
    assert json.loads(json.dumps(answer)) == answer
    assert (answer["text"], answer["asked"]) == ("the query", "some")
    assert len(answer["scores"]) == len(answer["starts"]) == len(given.queries[0].ids)
    first = answer["tokens"][0]["behind"][0]
    assert first["text"] == f"text {first['row']}"
    assert first["label"] in names
    assert len(first["scores"]) == len(given.train[first["row"]].ids)


def test_a_text_of_one_token_is_that_token() -> None:
    given = setting()
    single = without(given.train[1], 0)
    while len(single.ids) > 1:
        single = without(single, 0)
    given = replace(given, train=[single, *given.train[1:]])
    vectors = salience_gradients(given, [(0, 0)])
    (found, _) = deletion(given, vectors, [0, 1])
    np.testing.assert_allclose(found[:, 0], train_products(given, vectors)[:, 0] / TEXTS)


def test_what_is_not_known_is_told() -> None:
    with pytest.raises(AssayError, match="salience"):
        Hybrid(inverse, salience="attention")
    with pytest.raises(AssayError, match="perturbation"):
        Hybrid(inverse, perturbation="none")
    with pytest.raises(AssayError, match="positions"):
        Hybrid(inverse).explain(setting(), 0, tokens=[99])

"""Contextual decomposition in numpy for one text and one set, number by number: β and γ are both carried along."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erf, expit

RELU, TANH, GELU = (lambda x: np.maximum(x, 0)), np.tanh, (lambda x: x * (1 + erf(x / math.sqrt(2))) / 2)


def numbers(module):
    return {name: each.detach().double().numpy() for name, each in module.named_parameters()}


def halves(function, part, rest, bias):
    """The three parts of f(part + rest + bias): Shapley's formula for the first two, f(bias) for the third."""
    base = function(bias)
    first = (function(part + bias) - base + function(part + rest + bias) - function(rest + bias)) / 2
    second = (function(rest + bias) - base + function(part + rest + bias) - function(part + bias)) / 2
    return first, second, base


def sampled(function, part, rest, bias, versions):
    """The first part as a mean over the values that versions of a text have there."""
    first = np.mean([function(value) - function(value - part) for value in versions], axis=0)
    base = function(bias)
    return first, function(part + rest + bias) - first - base, base


def products(left, right):
    """All nine products of (β, γ, bias) × (β, γ, bias): β gets those of β with β and bias, γ the rest but bias²."""
    relevant = left[0] * right[0] + left[0] * right[2] + left[2] * right[0]
    rest = sum(left[i] * right[j] for i, j in ((0, 1), (1, 0), (1, 1), (1, 2), (2, 1)))
    return relevant, rest, left[2] * right[2]


class Recurrent:
    """One direction of an LSTM or GRU; `trace` is what versions of the text have in each step, where there are any."""

    def __init__(self, network):
        self.weights = numbers(network)
        self.size = network.hidden_size
        self.kind = "lstm" if len(self.weights["bias_ih_l0"]) == 4 * self.size else "gru"

    def slot(self, name, number):
        return self.weights[name + "_l0"][number * self.size : (number + 1) * self.size]

    def reads(self, number, x, h):
        return self.slot("weight_ih", number) @ x + self.slot("weight_hh", number) @ h

    def bias(self, number):
        return self.slot("bias_ih", number) + self.slot("bias_hh", number)

    def divide(self, function, part, rest, bias, name, place, traces):
        if not traces:
            return halves(function, part, rest, bias)
        return sampled(function, part, rest, bias, [trace[place][name] for trace in traces])

    def run(self, words, chosen, traces=()):
        """β and γ of each state."""
        zero = np.zeros(self.size)
        state, memory, found = (zero, zero), (zero, zero), []
        for place, (word, inside) in enumerate(zip(words, chosen, strict=True)):
            x = (word * inside, word * (not inside))
            advance = self.lstm if self.kind == "lstm" else self.gru
            state, memory = advance(x, state, memory, inside, place, traces)
            found.append(state)
        return np.array(found)

    def lstm(self, x, state, memory, inside, place, traces):
        def gate(number, function):
            part, rest = (self.reads(number, x[side], state[side]) for side in (0, 1))
            return self.divide(function, part, rest, self.bias(number), number, place, traces)

        keep, forget, new = gate(0, expit), gate(1, expit), gate(2, np.tanh)
        written = products(keep, new)
        kept = (forget[0] + forget[2]) * memory[0], sum(forget) * memory[1] + forget[1] * memory[0]
        memory = (written[0] + kept[0] + written[2] * inside, written[1] + kept[1] + written[2] * (not inside))
        shown = self.divide(np.tanh, *memory, np.zeros(self.size), "memory", place, traces)
        out = expit(sum(self.reads(3, x[side], state[side]) for side in (0, 1)) + self.bias(3))
        return (out * shown[0], out * shown[1]), memory

    def gru(self, x, state, memory, inside, place, traces):
        def gate(number):
            part, rest = (self.reads(number, x[side], state[side]) for side in (0, 1))
            return self.divide(expit, part, rest, self.bias(number), number, place, traces)

        reset, update = gate(0), gate(1)
        past = *(self.slot("weight_hh", 2) @ state[side] for side in (0, 1)), self.slot("bias_hh", 2)
        recalled = products(reset, past)
        argument = [self.slot("weight_ih", 2) @ x[side] + recalled[side] for side in (0, 1)]
        constant = self.slot("bias_ih", 2) + recalled[2]
        new = self.divide(np.tanh, *argument, constant, "argument", place, traces)
        written = products((-update[0], -update[1], 1 - update[2]), new)
        kept = (update[0] + update[2]) * state[0], sum(update) * state[1] + update[1] * state[0]
        state = (written[0] + kept[0] + written[2] * inside, written[1] + kept[1] + written[2] * (not inside))
        return state, memory

    def trace(self, words):
        """What a plain pass has before each activation."""
        state, memory, found = np.zeros(self.size), np.zeros(self.size), []
        for word in words:
            if self.kind == "lstm":
                here = {number: self.reads(number, word, state) + self.bias(number) for number in range(4)}
                memory = expit(here[1]) * memory + expit(here[0]) * np.tanh(here[2])
                state = expit(here[3]) * np.tanh(memory)
                here["memory"] = memory
            else:
                here = {number: self.reads(number, word, state) + self.bias(number) for number in range(2)}
                past = self.slot("weight_hh", 2) @ state + self.slot("bias_hh", 2)
                here["argument"] = self.slot("weight_ih", 2) @ word + self.slot("bias_ih", 2) + expit(here[0]) * past
                update = expit(here[1])
                state = (1 - update) * np.tanh(here["argument"]) + update * state
            found.append(here)
        return found


def bidirectional(encoder, words, chosen, versions=()):
    """β and γ [T, 2, 2H] of a text; `versions` are texts with another context."""
    found = []
    for network, turn in ((encoder.ahead, 1), (encoder.behind, -1)):
        layer = Recurrent(network)
        traces = [layer.trace(version[::turn]) for version in versions]
        found.append(layer.run(words[::turn], chosen[::turn], traces)[::turn])
    return np.concatenate(found, axis=-1)


def proportional(weight, bias, pair):
    """A linear map of β and γ, which share its bias as their sizes are."""
    part, rest = (value @ weight.T for value in pair)
    size = np.abs(part) + np.abs(rest)
    owned = np.divide(np.abs(part), size, out=np.zeros_like(part), where=size > 0)
    return np.array([part + owned * bias, rest + (1 - owned) * bias])


def alone(pair):
    """ReLU of β by itself, and γ gets what else there is."""
    part = RELU(pair[0])
    return np.array([part, RELU(pair[0] + pair[1]) - part])


def evenly(function, pair):
    return np.array(halves(function, pair[0], pair[1], np.zeros_like(pair[0]))[:2])


def convolved(encoder, words, chosen):
    """β and γ [T, 2, M]: each window of words as one long vector."""
    pair, found = np.array([words * chosen[:, None], words * ~chosen[:, None]]), []
    for layer in encoder.layers:
        parts = numbers(layer)
        width = parts["weight"].shape[2]
        wide = np.pad(pair, ((0, 0), (width // 2, width // 2), (0, 0)))
        rows = np.stack([wide[:, place : place + width].reshape(2, -1) for place in range(len(words))], axis=1)
        flat = parts["weight"].transpose(0, 2, 1).reshape(len(parts["weight"]), -1)
        found.append(alone(proportional(flat, parts["bias"], rows)))
    return np.concatenate(found, axis=-1).transpose(1, 0, 2)


def norm(parts, name, pair):
    whole = pair.sum(0)
    deviation = np.sqrt(whole.var(-1, keepdims=True) + 1e-5)
    scaled = (pair - pair.mean(-1, keepdims=True)) / deviation * parts[name + ".weight"]
    return proportional(np.eye(scaled.shape[-1]), parts[name + ".bias"], scaled)


def attended(parts, at, heads, pair):
    """What a layer of self-attention adds: weights are those of the whole, values are divided."""
    split = proportional(
        parts[at + "project.weight"], parts[at + "project.bias"], norm(parts, at + "before_attention", pair)
    )
    query, key, value = np.split(split, 3, axis=-1)
    size, found = query.shape[-1] // heads, []
    for head in range(heads):
        one = slice(head * size, (head + 1) * size)
        scores = query[..., one].sum(0) @ key[..., one].sum(0).T / math.sqrt(size)
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        found.append(np.array([weights @ value[side][:, one] for side in (0, 1)]))
    return proportional(parts[at + "merge.weight"], parts[at + "merge.bias"], np.concatenate(found, axis=-1))


def transformed(encoder, words, chosen, positions):
    """β and γ [T, 2, M] of a transformer of ours."""
    parts = numbers(encoder)
    pair = np.array([words * chosen[:, None], words * ~chosen[:, None]])
    pair = proportional(parts["project.weight"], parts["project.bias"], pair)
    owned = np.abs(pair[0]) / np.abs(pair).sum(0)
    pair = pair + np.array([owned, 1 - owned]) * positions
    for number, block in enumerate(encoder.blocks):
        at = f"blocks.{number}."
        pair = pair + attended(parts, at, block.heads, pair)
        inner = proportional(
            parts[at + "mix.0.weight"], parts[at + "mix.0.bias"], norm(parts, at + "before_mixing", pair)
        )
        pair = pair + proportional(parts[at + "mix.2.weight"], parts[at + "mix.2.bias"], evenly(GELU, inner))
    return norm(parts, "norm", pair).transpose(1, 0, 2)

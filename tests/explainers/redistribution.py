"""Relevance handed down neuron by neuron, in numpy: each sum in proportion to its terms."""

from __future__ import annotations

import numpy as np

PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def handed_down(values, weights, total, relevance, epsilon):
    """R_i = Σ_j x_i w_ji / (z_j + ε sign z_j) R_j, neuron by neuron."""
    found = np.zeros(len(values))
    for i in range(len(values)):
        for j in range(len(total)):
            found[i] += values[i] * weights[j, i] / (total[j] + epsilon * np.sign(total[j])) * relevance[j]
    return found


def pooled_down(weights, states, relevance, epsilon):
    """From the weighted mean of the states [T, M] to each of them."""
    mean = weights @ states
    return weights[:, None] * states / (mean + epsilon * np.sign(mean)) * relevance


def squash(x):
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(network, x, relevance, epsilon):
    """The relevance of tokens [T, D] and of biases from that of one direction's states [T, H] (Arras et al., 2017)."""
    w, u, b, d = (getattr(network, f"{part}_l0").detach().numpy() for part in PARTS)
    size = network.hidden_size
    states, memories, kept = [np.zeros(size)], [np.zeros(size)], []
    for token in x:
        i, f, z, o = np.split(w @ token + u @ states[-1] + b + d, 4)
        memories.append(squash(f) * memories[-1] + squash(i) * np.tanh(z))
        states.append(squash(o) * np.tanh(memories[-1]))
        kept.append((squash(f) * memories[-2], squash(i) * np.tanh(z), z))
    new, one = slice(2 * size, 3 * size), np.eye(size)
    tokens, biases = np.zeros_like(x), 0.0
    to_state = to_memory = np.zeros(size)
    for place in reversed(range(len(x))):
        old, written, z = kept[place]
        to_memory = to_memory + to_state + relevance[place]
        to_new = handed_down(written, one, memories[place + 1], to_memory, epsilon)
        to_memory = handed_down(old, one, memories[place + 1], to_memory, epsilon)
        tokens[place] = handed_down(x[place], w[new], z, to_new, epsilon)
        to_state = handed_down(states[place], u[new], z, to_new, epsilon)
        biases += handed_down(np.ones(1), (b + d)[new][:, None], z, to_new, epsilon).sum()
    return tokens, biases


def gru_by_hand(network, x, relevance, epsilon):
    """The same for a GRU: reset and update gates get nothing, the old state and the candidate everything."""
    w, u, b, d = (getattr(network, f"{part}_l0").detach().numpy() for part in PARTS)
    size = network.hidden_size
    states, kept = [np.zeros(size)], []
    for token in x:
        (r, z, n), (s, y, v) = np.split(w @ token + b, 3), np.split(u @ states[-1] + d, 3)
        reset, update = squash(r + s), squash(z + y)
        old, written = update * states[-1], (1 - update) * np.tanh(n + reset * v)
        kept.append((old, written, n + reset * v, reset))
        states.append(old + written)
    new, one = slice(2 * size, 3 * size), np.eye(size)
    tokens, biases = np.zeros_like(x), 0.0
    to_state = np.zeros(size)
    for place in reversed(range(len(x))):
        old, written, total, reset = kept[place]
        to_state = to_state + relevance[place]
        to_new = handed_down(written, one, states[place + 1], to_state, epsilon)
        to_old = handed_down(old, one, states[place + 1], to_state, epsilon)
        tokens[place] = handed_down(x[place], w[new], total, to_new, epsilon)
        to_state = to_old + handed_down(states[place], reset[:, None] * u[new], total, to_new, epsilon)
        biases += handed_down(np.ones(1), (b[new] + reset * d[new])[:, None], total, to_new, epsilon).sum()
    return tokens, biases


BY_HAND = {"lstm": lstm_by_hand, "gru": gru_by_hand}


def both_ways(encoder, x, relevance, epsilon):
    """The relevance of tokens [T, D] and of biases through a bidirectional LSTM or GRU."""
    by_hand = BY_HAND[type(encoder.ahead).__name__.lower()]
    half = encoder.ahead.hidden_size
    ahead, ahead_biases = by_hand(encoder.ahead, x, relevance[:, :half], epsilon)
    behind, behind_biases = by_hand(encoder.behind, x[::-1], relevance[::-1, half:], epsilon)
    return ahead + behind[::-1], ahead_biases + behind_biases

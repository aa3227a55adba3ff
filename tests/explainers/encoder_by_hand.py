"""One layer of BERT and its classifier in numpy, with relevance handed down from sum to terms, message by message."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
from scipy.special import erf, softmax


def share(messages, totals, relevance, epsilon):
    """Σ_j z_ij / (z_j + ε sign z_j) R_j of messages [i, j]."""
    return messages @ (relevance / (totals + epsilon * np.sign(totals)))


class Encoder:
    """Reads embeddings [S, D] and keeps every value, then hands relevance down; `weighs` is AttnLRP, else CP-LRP."""

    def __init__(self, network, epsilon, weighs):
        self.epsilon, self.weighs, self.biases = epsilon, weighs, 0.0
        self.parts = {name: each.detach().numpy() for name, each in network.named_parameters()}
        self.heads = network.config.num_attention_heads
        self.floor = network.config.layer_norm_eps

    def linear(self, name, x):
        return x @ self.parts[name + ".weight"].T + self.parts[name + ".bias"]

    def linear_back(self, name, x, relevance):
        weight, bias = self.parts[name + ".weight"], self.parts[name + ".bias"]
        total = self.linear(name, x)
        found = np.zeros_like(x)
        for place in range(len(x)):
            found[place] = share(x[place][:, None] * weight.T, total[place], relevance[place], self.epsilon)
            self.biases += share(bias[None], total[place], relevance[place], self.epsilon).sum()
        return found

    def norm(self, name, x):
        mean, deviation = x.mean(-1, keepdims=True), np.sqrt(x.var(-1, keepdims=True) + self.floor)
        return (x - mean) / deviation * self.parts[name + ".weight"] + self.parts[name + ".bias"]

    def norm_back(self, name, x, relevance):
        """With the deviation held, a norm is a matrix (I - 1/D) diag(w)/σ; it has no stabiliser here."""
        weight, bias, total = self.parts[name + ".weight"], self.parts[name + ".bias"], self.norm(name, x)
        centre, found = np.eye(x.shape[1]) - 1 / x.shape[1], np.zeros_like(x)
        for place in range(len(x)):
            matrix = centre * weight / np.sqrt(x[place].var() + self.floor)
            found[place] = share(x[place][:, None] * matrix, total[place], relevance[place], 0.0)
            self.biases += share(bias[None] * 1.0, total[place], relevance[place], 0.0).sum()
        return found

    def sum_back(self, terms, relevance):
        total = sum(terms)
        return [term / (total + self.epsilon * np.sign(total)) * relevance for term in terms]

    def split(self, x):
        return x.reshape(len(x), self.heads, -1).transpose(1, 0, 2)

    def forward(self, words, kinds, positions):
        at = "bert.encoder.layer.0."
        v = SimpleNamespace(words=words, kinds=kinds, positions=positions, typed=words + kinds)
        v.summed = v.typed + positions
        v.start = self.norm("bert.embeddings.LayerNorm", v.summed)
        v.q, v.k, v.v = (
            self.split(self.linear(f"{at}attention.self.{name}", v.start)) for name in ("query", "key", "value")
        )
        v.scores = v.q @ v.k.transpose(0, 2, 1) / math.sqrt(v.q.shape[-1])
        v.weights = softmax(v.scores, axis=-1)
        v.heads = v.weights @ v.v
        v.joined = v.heads.transpose(1, 0, 2).reshape(len(words), -1)
        v.merged = self.linear(f"{at}attention.output.dense", v.joined)
        v.middle = self.norm(f"{at}attention.output.LayerNorm", v.merged + v.start)
        v.wide = self.linear(f"{at}intermediate.dense", v.middle)
        v.bent = v.wide * (1 + erf(v.wide / math.sqrt(2))) / 2
        v.narrow = self.linear(f"{at}output.dense", v.bent)
        v.states = self.norm(f"{at}output.LayerNorm", v.narrow + v.middle)
        v.pool = self.linear("bert.pooler.dense", v.states[:1])
        v.logits = self.linear("classifier", np.tanh(v.pool))
        return v

    def back(self, v, contrast):
        """The relevance of words [S, D], kinds and positions; that of biases is kept."""
        at = "bert.encoder.layer.0."
        pooled = self.linear_back("classifier", np.tanh(v.pool), contrast * v.logits)
        states = np.zeros_like(v.states)
        states[:1] = self.linear_back("bert.pooler.dense", v.states[:1], pooled)
        summed = self.norm_back(f"{at}output.LayerNorm", v.narrow + v.middle, states)
        narrow, middle = self.sum_back([v.narrow, v.middle], summed)
        wide = self.linear_back(f"{at}output.dense", v.bent, narrow)
        middle = middle + self.linear_back(f"{at}intermediate.dense", v.middle, wide)
        summed = self.norm_back(f"{at}attention.output.LayerNorm", v.merged + v.start, middle)
        merged, start = self.sum_back([v.merged, v.start], summed)
        joined = self.linear_back(f"{at}attention.output.dense", v.joined, merged)
        for name, relevance in self.attention_back(v, self.split(joined)).items():
            flat = relevance.transpose(1, 0, 2).reshape(len(v.words), -1)
            start = start + self.linear_back(f"{at}attention.self.{name}", v.start, flat)
        summed = self.norm_back("bert.embeddings.LayerNorm", v.summed, start)
        typed, positions = self.sum_back([v.typed, v.positions], summed)
        words, kinds = self.sum_back([v.words, v.kinds], typed)
        return words, kinds, positions

    def attention_back(self, v, relevance):
        """By CP-LRP values get all; by AttnLRP half, and a quarter of each weight's part goes to queries and keys."""
        found = {name: np.zeros_like(v.v) for name in ("query", "key", "value")}
        for h, s in np.ndindex(*v.weights.shape[:2]):
            messages = v.weights[h, s][:, None] * v.v[h]  # [t, k]
            total = v.heads[h, s]
            shares = messages * relevance[h, s] / (total + self.epsilon * np.sign(total))
            found["value"][h] += shares / 2 if self.weighs else shares
            if self.weighs:
                weights = shares.sum(-1) / 2
                scores = v.scores[h, s] * (weights - v.weights[h, s] * weights.sum())
                products = v.q[h, s] * v.k[h]  # [t, k]; what divides them comes after their sum
                raw = products.sum(-1)
                given = products * (scores / (raw + self.epsilon * np.sign(raw)))[:, None] / 2
                found["query"][h, s] += given.sum(0)
                found["key"][h] += given
        return found

"""The figures of Serrano and Smith (2019): accuracies (table 3) and flips in percent (figures 9, 12 and 13).

Flips are given as: both erasures change the decision, the top item's alone, the random one's alone, neither.
"""

from __future__ import annotations

ACCURACY: dict[str, dict[str, float]] = {
    "yahoo": dict(
        zip(
            ("han-rnn", "han-conv", "han-none", "flan-rnn", "flan-conv", "flan-none"),
            (74.6, 72.8, 73.1, 75.5, 73.1, 72.3),
            strict=True,
        )
    ),
    "imdb": dict(
        zip(
            ("han-rnn", "han-conv", "han-none", "flan-rnn", "flan-conv", "flan-none"),
            (50.3, 48.9, 46.1, 49.1, 48.2, 45.4),
            strict=True,
        )
    ),
}

Flips = tuple[float, float, float, float]

FLIPS: dict[tuple[str, str, str], Flips] = {
    ("yahoo", "han-rnn", "attention"): (0.5, 8.7, 1.3, 89.6),
    ("imdb", "han-rnn", "attention"): (2.2, 12.2, 1.4, 84.2),
    ("yahoo", "han-rnn", "product"): (1.3, 9.5, 0.5, 88.7),
    ("imdb", "han-rnn", "product"): (2.9, 15.5, 0.6, 81.0),
    ("yahoo", "flan-rnn", "product"): (0.6, 13.2, 0.0, 86.2),
    ("imdb", "flan-rnn", "product"): (0.2, 18.3, 0.1, 81.5),
    ("yahoo", "han-conv", "product"): (2.8, 5.1, 0.4, 91.7),
    ("imdb", "han-conv", "product"): (5.0, 20.5, 0.9, 73.6),
    ("yahoo", "flan-conv", "product"): (1.1, 19.3, 0.0, 79.6),
    ("imdb", "flan-conv", "product"): (0.5, 26.7, 0.0, 72.8),
    ("yahoo", "han-none", "product"): (5.6, 23.1, 0.6, 70.7),
    ("imdb", "han-none", "product"): (9.2, 42.9, 0.8, 47.1),
    ("yahoo", "flan-none", "product"): (1.8, 19.4, 0.0, 78.8),
    ("imdb", "flan-none", "product"): (0.6, 36.2, 0.1, 63.1),
}

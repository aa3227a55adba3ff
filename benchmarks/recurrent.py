"""Prints the two tables behind docs/decisions 0002 and 0005: threads, and packed sequences."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from assay.models.encoders import Recurrent
from benchmarks.__main__ import machine

TEXTS, EMBEDDING, HIDDEN = 32, 300, 128


def texts(words: int) -> tuple[Tensor, Tensor]:
    """Embeddings of texts that have from four fifths to all of `words`, and their mask."""
    lengths = torch.randint(words * 4 // 5, words + 1, (TEXTS,))
    lengths[0] = words
    return torch.randn(TEXTS, words, EMBEDDING, requires_grad=True), torch.arange(words) < lengths[:, None]


def packed(network: nn.LSTM, x: Tensor, mask: Tensor) -> Tensor:
    sequence = pack_padded_sequence(x, mask.sum(-1), batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(network(sequence)[0], batch_first=True)[0]


def milliseconds(run: Callable[[], Tensor], clock: Callable[[], float], repeats: int) -> float:
    """The time of one forward and backward pass; one before warms up."""
    run().sum().backward()
    start = clock()
    for _ in range(repeats):
        run().sum().backward()
    return 1000 * (clock() - start) / repeats


def main() -> None:
    torch.manual_seed(0)
    ours = Recurrent(nn.LSTM, EMBEDDING, HIDDEN)
    torchs = nn.LSTM(EMBEDDING, HIDDEN, batch_first=True, bidirectional=True)
    print(f"{time.strftime('%Y-%m-%d')}: {machine()}\n\n| words | packed, ms | ours, ms |\n|---|---|---|")
    torch.set_num_threads(1)
    for words in (20, 200, 400):
        x, mask = texts(words)
        repeats = max(1, 400 // words)
        with_packing = milliseconds(lambda x=x, mask=mask: packed(torchs, x, mask), time.process_time, repeats)
        without = milliseconds(lambda x=x, mask=mask: ours(x, mask), time.process_time, repeats)
        print(f"| {words} | {with_packing:,.0f} | {without:,.0f} |")
    print("\n| threads | ours, 20 words, ms of wall time |\n|---|---|")
    x, mask = texts(20)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        print(f"| {threads} | {milliseconds(lambda: ours(x, mask), time.perf_counter, 50):,.0f} |")


if __name__ == "__main__":
    main()

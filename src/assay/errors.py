"""Errors that a user can correct: one sentence each, never a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class AssayError(Exception):
    """An error message of one sentence, saying what is wrong and what to do; the command line exits with status 2."""


class Damaged(AssayError):
    """A file of ours that is corrupt: it can be deleted and made again."""


@contextmanager
def library_errors(sentence: Callable[[str], str], kind: type[AssayError] = AssayError) -> Iterator[None]:
    """Context manager: re-raises any exception of a library as an AssayError; `sentence` gets the shortened reason."""
    try:
        yield
    except AssayError:
        raise
    except Exception as fault:  # libraries raise many kinds, of their own and of those below them
        raise kind(sentence(reason(fault))) from fault


def reason(fault: Exception) -> str:
    """The message of an exception on one line, at most 160 characters."""
    return " ".join(str(fault).split())[:160] or type(fault).__name__


def unknown(kind: str, name: str, known: Iterable[str]) -> AssayError:
    """The error for an unknown name, with the closest known one as a suggestion."""
    names = sorted(known)
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"choose one of: {', '.join(names)}."
    return AssayError(f"Unknown {kind} {name!r}; {hint}")

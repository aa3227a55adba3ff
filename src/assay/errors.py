"""What a user did, saw or gave that we cannot go on with, told in one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class AssayError(Exception):
    """One clear sentence that says what is wrong and what to do; the command line prints it and exits with 2."""


class Damaged(AssayError):
    """The same of a file that is not what was written; what we made ourselves can be made again."""


@contextmanager
def told(sentence: Callable[[str], str], kind: type[AssayError] = AssayError) -> Iterator[None]:
    """Turns whatever a library raises into the sentence that is made of its reason, cut short."""
    try:
        yield
    except AssayError:
        raise
    except Exception as fault:  # libraries raise many kinds, of their own and of those below them
        raise kind(sentence(reason(fault))) from fault


def reason(fault: Exception) -> str:
    """What a library says of a fault, on one line and cut short."""
    return " ".join(str(fault).split())[:160] or type(fault).__name__


def unknown(kind: str, name: str, known: Iterable[str]) -> AssayError:
    """The error for a name that is not among `known`, with the nearest one suggested."""
    names = sorted(known)
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"choose one of: {', '.join(names)}."
    return AssayError(f"Unknown {kind} {name!r}; {hint}")

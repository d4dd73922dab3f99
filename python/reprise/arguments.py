"""Arguments of the wrong type or size: exceptions that name the argument, what it is, and what it must be."""
from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable
from typing import Any


def need(value: Any, kind: type[Any], what: str, must_be: str) -> Any:
    """Returns the value if it is of this kind. `what` is the place and the name: "[session] option name"."""
    if not isinstance(value, kind):
        raise TypeError(f"{what} is {_shown(value)}: it must be {must_be}")
    return value


def function(value: Any, what: str) -> Any:
    """Returns what can be called."""
    if not callable(value):
        raise TypeError(f"{what} is {_shown(value)}: it must be a function, or something else that can be called")
    return value


def flag(value: Any, what: str) -> bool:
    """Returns True or False; "no" is neither."""
    return bool(need(value, bool, what, "True or False"))


def text(value: Any, what: str) -> str:
    """Returns a text."""
    return str(need(value, str, what, "text"))


def real(value: Any, what: str) -> float:
    """Returns a number, whichever."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{what} is {_shown(value)}: it must be a number")
    return float(value)


def number(value: Any, what: str, least: float = 0.0, *, finite: bool = True) -> float:
    """Returns a number that is not too small, and finite unless it may be infinite."""
    real(value, what)
    if not least <= float(value) or (finite and math.isinf(value)):
        raise ValueError(f"{what} is {value}: it must be at least {least:g}{', and finite' if finite else ''}")
    return float(value)


def whole(value: Any, what: str, least: int = 0, most: int = 2**63 - 1) -> int:
    """Returns a whole number in this range."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{what} is {_shown(value)}: it must be a whole number")
    if not least <= int(value) <= most:
        raise ValueError(f"{what} is {value}: it must be from {least} to {most}")
    return int(value)


def wholes(values: Any, what: str) -> list[int]:
    """Returns a list of whole numbers, from 1 on."""
    need(values, Iterable, what, "a list of whole numbers")
    return [whole(value, what, 1) for value in values]


def path(value: Any, what: str) -> str:
    """Returns the path as text."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise TypeError(f"{what} is {_shown(value)}: it must be a path, as text or of pathlib")
    return os.fspath(value)


def _shown(value: Any) -> str:
    """Short things as they are, others by their type."""
    text = repr(value) if isinstance(value, (str, bytes, int, float, type(None))) else ""
    return text if 0 < len(text) <= 40 else f"of type {type(value).__name__}"

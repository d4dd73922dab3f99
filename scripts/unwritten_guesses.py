"""Arguments for operators that no sample reaches, guessed from their schemas.

Most guesses are refused by the operator, which does no harm. Some end the process, as internal operators may be called
wrongly, so unwritten.py makes each in a process of its own.
"""

import itertools

import torch

SHAPES = ((4, 4), (4,), (2, 4, 4, 4), (2, 4, 4), (1, 2, 4, 4, 4))
DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
NUMBERS = (1, 2, 0)
LENGTHS = (1, 2, 3, 0)
# Arguments that want whole numbers, whatever the others are.
WHOLE = ("index", "indices", "offsets", "lengths", "target", "crow_indices", "offset2bag", "bag_size", "pivots")


class NoGuess(Exception):
    """An argument of a type that nobody guesses."""


def guessed(kind: str, name: str, shape, dtype, number, length):
    """A value for an argument of this type."""
    if kind.startswith("Optional[") and kind != "Optional[Tensor]":
        return None if "Generator" in kind else guessed(kind[9:-1], name, shape, dtype, number, length)
    if kind in ("Tensor", "Optional[Tensor]"):
        if any(word in name for word in WHOLE):
            return torch.zeros(shape, dtype=torch.int64)
        return (torch.rand(shape) * 3 + 0.1).to(dtype)
    if kind in ("List[Tensor]", "List[Optional[Tensor]]"):
        return [guessed("Tensor", name, shape, dtype, number, length) for _ in range(2)]
    simple = {"int": number, "number": number, "Scalar": number, "float": number / 2, "bool": bool(number % 2),
              "str": "mean", "List[int]": [max(number, 1)] * length, "List[float]": [1.0] * length,
              "List[bool]": [True] * length, "List[number]": [1] * 2, "List[Scalar]": [1] * 2}
    if kind not in simple:
        raise NoGuess(kind)
    return simple[kind]


def guesses(schema):
    """Positional and named arguments for an operator, over and over."""
    for shape, dtype, number, length in itertools.product(SHAPES, DTYPES, NUMBERS, LENGTHS):
        given, named = [], {}
        try:
            for argument in schema.arguments:
                if argument.has_default_value() and not argument.is_out:
                    value = argument.default_value
                else:
                    value = guessed(str(argument.type), argument.name, shape, dtype, number, length)
                if argument.kwarg_only:
                    named[argument.name] = value
                else:
                    given.append(value)
        except NoGuess:
            return
        yield given, named

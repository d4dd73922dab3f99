"""What a chain knows about the states of a program in Python: their bytes, copies of them, and how they become one array.

A state is an array of numpy, a number, or a tuple, list or dict of such, as deep as you like. The library sees an array
as it is. Everything else is taken apart into its arrays and a description of what is around them, which has every bit of
the numbers in it.
"""
from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

Look = tuple[int, Any, list[int]]

#: The dtypes that the library has.
NUMBERS = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)


def refuse(what: object) -> TypeError:
    """Returns the error for something that no state can be or have."""
    if type(what) is np.ndarray or isinstance(what, np.generic):
        known = ", ".join(sorted(NUMBERS))
        return TypeError(f"a state has elements of dtype {what.dtype}: they have to be numbers of this machine, {known}")
    hint = "; np.asarray() makes a plain array of it" if isinstance(what, np.ndarray) else ""
    name = type(what).__name__
    return TypeError(f"a state is an array of numpy, a number, or a tuple, list or dict of these, and not {name!r}{hint}")


def _is_known(dtype: np.dtype[Any]) -> bool:
    return dtype.isnative and dtype.name in NUMBERS


def _bytes_of_int(value: int) -> int:
    """Returns 8 for an int of 64 bits, and a multiple of it for a larger one."""
    return 8 * (value.bit_length() // 64 + 1)


def _bytes_of_number(value: object) -> int:
    """Returns the bytes of something that is no container and no array."""
    if isinstance(value, np.generic) and _is_known(value.dtype):
        return int(value.nbytes)
    if type(value) is int:
        return _bytes_of_int(value)
    if value is None or type(value) in (bool, float):
        return 8
    if type(value) is complex:
        return 16
    if type(value) is str:
        return len(value)
    raise refuse(value)


def look(state: object) -> Look:
    """Returns the bytes of a state, the same state with arrays that cannot be written, and where these are in memory."""
    addresses: list[int] = []
    total = 0

    def one(part: Any) -> Any:
        nonlocal total
        kind = type(part)
        if kind is np.ndarray:
            if not _is_known(part.dtype):
                raise refuse(part)
            total += part.nbytes
            if part.nbytes and part.flags.writeable:
                addresses.append(part.__array_interface__["data"][0])
            shown = part.view()
            shown.flags.writeable = False
            return shown
        if kind is tuple:
            return tuple(one(each) for each in part)
        if kind is list:
            return [one(each) for each in part]
        if kind is dict:
            return {_key(name): one(each) for name, each in part.items()}
        total += _bytes_of_number(part)
        return part

    shown = one(state)
    return total, shown, addresses


def _key(name: object) -> str | int:
    if type(name) is str or type(name) is int:
        return name
    raise TypeError(f"a state has a dict with the key {name!r}: keys are texts or whole numbers")


def copy(state: Any) -> Any:
    """Returns a copy that shares no memory with the state."""
    kind = type(state)
    if kind is np.ndarray:
        return state.copy(order="K")
    if kind is tuple:
        return tuple(copy(each) for each in state)
    if kind is list:
        return [copy(each) for each in state]
    if kind is dict:
        return {name: copy(each) for name, each in state.items()}
    return state


def copy_into(state: Any, spare: Any) -> Any:
    """Returns a copy of the state in the memory of the spare one, as far as that has the same form."""
    kind = type(state)
    if type(spare) is not kind:
        return copy(state)
    if kind is np.ndarray:
        if spare.shape != state.shape or spare.dtype != state.dtype or spare.strides != state.strides:
            return copy(state)
        np.copyto(spare, state)
        return spare
    if kind in (tuple, list) and len(spare) == len(state):
        return kind(copy_into(each, place) for each, place in zip(state, spare))
    if kind is dict:
        return {name: copy_into(each, spare.get(name)) for name, each in state.items()}
    return copy(state)


def take_apart(state: Any) -> tuple[list[np.ndarray[Any, Any]], bytes]:
    """Returns the arrays of a state, each contiguous, and a description of the rest. A number has as many bytes in it as
    any other of its type, so that the size of a state does not depend on how far a program has counted."""
    arrays: list[np.ndarray[Any, Any]] = []

    def one(part: Any) -> Any:
        kind = type(part)
        if kind is np.ndarray:
            axes = np.argsort([-abs(stride) for stride in part.strides], kind="stable")
            plain = np.ascontiguousarray(part.transpose(axes)).reshape(part.transpose(axes).shape)
            arrays.append(plain)
            return ["array", part.dtype.name, list(plain.shape), [int(axis) for axis in axes]]
        if kind in (tuple, list):
            return [kind.__name__, [one(each) for each in part]]
        if kind is dict:
            return ["dict", [[name, one(each)] for name, each in part.items()]]
        if isinstance(part, np.generic):
            return ["scalar", part.dtype.name, part.tobytes().hex()]
        if kind is bool:
            return ["bool", int(part)]
        if kind is int:
            return ["int", part.to_bytes(_bytes_of_int(part), "little", signed=True).hex()]
        if kind is float:
            return ["float", struct.pack("<d", part).hex()]
        if kind is complex:
            return ["complex", struct.pack("<2d", part.real, part.imag).hex()]
        return ["plain", part]

    description = one(state)
    return arrays, json.dumps(description).encode()


def put_together(description: bytes, memory: np.ndarray[Any, Any], step: int) -> Any:
    """Returns the state that was taken apart. Its arrays are copied from this memory, where each begins at a multiple of
    so many bytes."""
    begin = 0

    def one(part: Any) -> Any:
        nonlocal begin
        kind, *rest = part
        if kind == "array":
            dtype, shape, axes = rest
            plain = np.empty(shape, dtype)
            plain.reshape(-1).view(np.uint8)[:] = memory[begin : begin + plain.nbytes]
            begin += -(-plain.nbytes // step) * step
            return plain.transpose(np.argsort(axes))
        if kind == "tuple":
            return tuple(one(each) for each in rest[0])
        if kind == "list":
            return [one(each) for each in rest[0]]
        if kind == "dict":
            return {name: one(each) for name, each in rest[0]}
        if kind == "scalar":
            return np.frombuffer(bytes.fromhex(rest[1]), rest[0])[0]
        if kind == "bool":
            return bool(rest[0])
        if kind == "int":
            return int.from_bytes(bytes.fromhex(rest[0]), "little", signed=True)
        if kind == "float":
            return struct.unpack("<d", bytes.fromhex(rest[0]))[0]
        if kind == "complex":
            return complex(*struct.unpack("<2d", bytes.fromhex(rest[0])))
        return rest[0]

    return one(json.loads(description))

"""Schedules: what a chain remembers, and when it replays (recomputes) what it evicted.

    chain.schedule = reprise.schedule.every(8)
    chain.schedule = reprise.schedule.slots(20)         # Revolve
    chain.schedule = reprise.schedule.budget("64MiB")

State k of a chain is the one before layer k: state 0 is the input, and the state after layer k is state k+1.
"""
from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from . import _core, arguments
from .planning import bytes_of


class Schedule:
    """Chooses what a chain remembers. The functions of this module make one; several chains may have the same."""

    def __init__(self, core: _core.Schedule) -> None:
        self._core = core

    def remembers(self, layers: int | Mapping[str, Any], position: int) -> bool:
        """Answers, before anything has run, whether the state after this layer is remembered when backward begins.

        Args:
            layers: how many there are; for a schedule that depends on sizes, such as `budget`, the sizes of a chain
                (`Chain.sizes`).
            position: of the layer.
        """
        return self._core.remembers(_layers(layers), whole(position, "a layer"))

    def remembers_before(self, layers: int | Mapping[str, Any], position: int) -> bool:
        """Answers the same about the state before this layer."""
        return self._core.remembers_before(_layers(layers), whole(position, "a layer"))

    def __repr__(self) -> str:
        return f"reprise.schedule.{self._core.text()}"


def everything() -> Schedule:
    """Remembers every state until backward has used it; nothing is replayed."""
    return Schedule(_core.schedule_everything())


def every(n: int = 4, maximum: int | None = 64) -> Schedule:
    """Remembers the state before every n-th layer, and all states after the last of these, which backward needs first.
    Backward replays the n layers between two of them once. If there would be more than `maximum` n-th layers, they are
    further apart."""
    return Schedule(_core.schedule_every(whole(n, "n"), None if maximum is None else whole(maximum, "maximum")))


def slots(count: int) -> Schedule:
    """Remembers so many states, the first one included, with the fewest replays that are possible (Revolve). The state
    that a layer goes on from and the one it makes come on top."""
    return Schedule(_core.schedule_slots(whole(count, "the number of slots")))


def memory_and_disk(
    memory_slots: int = 1,
    disk_slots: int = 0,
    *,
    write_cost: float = 1.0,
    read_cost: float = 1.0,
    forward_cost: float = 1.0,
    backward_cost: float = 1.0,
) -> Schedule:
    """Remembers states in memory and on a disk (H-Revolve). The costs of writing and reading a state are in the unit of
    the forward cost. The chain needs a disk: `Chain.use_disk`."""
    return Schedule(
        _core.schedule_memory_and_disk(
            whole(memory_slots, "memory_slots"),
            whole(disk_slots, "disk_slots"),
            arguments.real(write_cost, "[chain] write_cost"),
            arguments.real(read_cost, "[chain] read_cost"),
            arguments.real(forward_cost, "[chain] forward_cost"),
            arguments.real(backward_cost, "[chain] backward_cost"),
        )
    )


def budget(amount: int | str, *, seconds: float = 5.0) -> Schedule:
    """Keeps all states, tapes and gradients of a chain within so many bytes, an int or text like "64MiB", and with them
    what a codec and a disk need for states on their way. It is a hard bound.

    It needs the sizes: `Chain.measure`. The first pass makes the plan, for so many seconds at most, or earlier if the
    plan is known to be the best one; see also `Chain.plan_in_background`."""
    total = bytes_of(amount, what="[chain] the budget")
    return Schedule(_core.schedule_budget(total, arguments.real(seconds, "[chain] seconds")))


def online(count: int) -> Schedule:
    """Uses so many slots, the first state included, for a number of layers that is known only when forward ends."""
    return Schedule(_core.schedule_online(whole(count, "the number of slots")))


def selective(threshold: float = 100.0) -> Schedule:
    """Remembers a state if recomputing it from the one remembered before would cost at least this much. The costs of
    layers are those given to `ChainLoop.forward`, or else 1 for each layer, and after `Chain.measure` seconds."""
    return Schedule(_core.schedule_selective(arguments.real(threshold, "[chain] threshold")))


def costly_layers(threshold: float = 100.0) -> Schedule:
    """Remembers the state after every layer whose own cost is at least this much, and the input. Costs as above."""
    return Schedule(_core.schedule_costly_layers(arguments.real(threshold, "[chain] threshold")))


def after(positions: Iterable[int]) -> Schedule:
    """Remembers the states after these layers, by position and in any order, and the input."""
    arguments.need(positions, Iterable, "[chain] the layers", "a list of positions")
    return Schedule(_core.schedule_after([whole(position, "a layer") for position in positions]))


def revolve_steps(layers: int, count: int) -> int:
    """Returns the fewest forward steps that backward of so many layers takes with so many slots: the closed form of
    Revolve. One for each layer is in it, whose backward follows at once."""
    return _core.revolve_steps(whole(layers, "the number of layers"), whole(count, "the number of slots"))


def whole(number: object, what: str) -> int:
    """Returns an int of Python's for a whole number of any kind that the library can count to."""
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise TypeError(f"{what} is {number!r}: it must be a whole number")
    result = operator.index(number)
    if not -(2**31) <= result < 2**31:
        raise ValueError(f"{what} is {result}: it must be less than 2^31")
    return result


def _layers(layers: int | Mapping[str, Any]) -> int | dict[str, Any]:
    return dict(layers) if isinstance(layers, Mapping) else whole(layers, "the number of layers")


__all__ = [
    "Schedule",
    "after",
    "budget",
    "costly_layers",
    "every",
    "everything",
    "memory_and_disk",
    "online",
    "revolve_steps",
    "selective",
    "slots",
]

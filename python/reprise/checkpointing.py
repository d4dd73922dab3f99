"""checkpoint(): activation checkpointing by hand, that replays operators instead of running functions again."""
from __future__ import annotations

import threading
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch.utils.checkpoint import noop_context_fn

from . import _core, arguments

T = TypeVar("T")

_sites: WeakKeyDictionary[Any, _core.Site] = WeakKeyDictionary()
_sites_lock = threading.Lock()


def _key_of(function: Any) -> Any:
    """What stays the same from one call of a function to the next: lambdas are made anew each time."""
    if isinstance(function, types.MethodType):
        return function.__self__
    return getattr(function, "__code__", function)


def _site_of(key: Any) -> _core.Site:
    """What is known from earlier calls: their operators are followed instead of recorded anew."""
    try:
        with _sites_lock:
            return _sites.setdefault(key, _core.Site())
    except TypeError:  # it cannot be remembered
        return _core.Site()


def _call_evicting(key: Any, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    region = _core.Region(_site_of(key))
    try:
        return function(*args, **kwargs)
    finally:
        region.end()


def checkpoint(
    function: Callable[..., T],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    context_fn: Callable[..., Any] = noop_context_fn,
    **kwargs: Any,
) -> T:
    """Calls function(*args, **kwargs) and returns its result; what autograd saves in it is evicted, and replayed when
    backward asks for it.

    It takes what `torch.utils.checkpoint.checkpoint` takes, so that changing one import is enough. The difference: the
    operators are replayed, not the function. It runs once, so that random numbers, batch statistics, hooks and everything
    else in it happen once, and nothing has to be the same in a second run. `use_reentrant`, `preserve_rng_state`,
    `determinism_check`, `debug` and `early_stop` are about that second run: they are accepted, and there is nothing for
    them to do. A `context_fn` of your own would choose operators by hand in it; here a policy of a `Session` does, so it
    raises TypeError.
    """
    if context_fn is not noop_context_fn:
        raise TypeError("[checkpoint] context_fn is not supported: use the policy of a reprise.Session instead")
    arguments.function(function, "[checkpoint] the function")
    del use_reentrant, preserve_rng_state, determinism_check, debug, early_stop
    return _call_evicting(_key_of(function), function, *args, **kwargs)


def checkpoint_sequential(
    functions: torch.nn.Sequential | Sequence[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Calls the functions one after another, in this many segments; what autograd saves in all but the last is evicted.

    It takes what `torch.utils.checkpoint.checkpoint_sequential` takes; see `checkpoint` for what differs.
    """
    del use_reentrant, preserve_rng_state
    if isinstance(functions, (torch.nn.Sequential, torch.nn.ModuleList)):
        parts = list(functions)  # and not children(), which has a repeated module once
    elif isinstance(functions, torch.nn.Module):
        parts = list(functions.children())
    else:
        parts = list(arguments.need(functions, Sequence, "[checkpoint_sequential] functions", "a Sequential or a list"))
    for part in parts:
        arguments.function(part, "[checkpoint_sequential] one of the functions")
    arguments.whole(segments, "[checkpoint_sequential] segments", -(2**63))
    if not 1 <= segments <= max(1, len(parts)):
        raise ValueError(
            f"[checkpoint_sequential] segments is {segments}: it must be from 1 to the {len(parts)} functions that there are"
        )
    size = len(parts) // segments

    def run(part: Sequence[Callable[..., Any]], value: Any) -> Any:
        for function in part:
            value = function(value)
        return value

    for begin in range(0, size * (segments - 1), max(size, 1)):
        input = _call_evicting(_key_of(parts[begin]), run, parts[begin : begin + size], input)
    return run(parts[size * (segments - 1) :], input)

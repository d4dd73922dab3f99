"""Stores: arrays of numpy by key, in memory and on disk, each within a hard budget in bytes, without torch.

    store = reprise.Store(memory="64MiB", disk="scratch", codec="half")
    store.put("layer 3", activation, cost=2.5)   # 2.5: what recomputing it would cost
    back = store.take("layer 3")
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core, arguments
from .handles import Handle
from .planning import bytes_of
from .schedule import whole
from .states import NUMBERS

Key = str | int


class Offer(NamedTuple):
    """What a rule knows about a value that is put.

    Attributes:
        key: a text; 7 and "7" are the same key.
        number: of this put, counted from 0, whether or not earlier ones were remembered.
        bytes: of the value, not coded.
        cost: of recomputing it.
    """

    key: str
    number: int
    bytes: int
    cost: float


class Rule:
    """A rule of the library's: see `reprise.remember`. A function of an `Offer` is a rule, too."""

    def __init__(self, core: _core.LibraryRule, text: str) -> None:
        self._core = core
        self._text = text

    def __repr__(self) -> str:
        return f"reprise.remember.{self._text}"


class remember:
    """Rules that choose which values a store keeps at all."""

    @staticmethod
    def all() -> Rule:
        """Keeps all of them."""
        return Rule(_core.remember_all(), "all()")

    @staticmethod
    def none() -> Rule:
        """Keeps none."""
        return Rule(_core.remember_none(), "none()")

    @staticmethod
    def every(n: int) -> Rule:
        """Keeps the first value, and every n-th after it, by the order of the puts."""
        return Rule(_core.remember_every(_positive(n)), f"every({n})")

    @staticmethod
    def every_key(n: int) -> Rule:
        """Keeps values whose key is a multiple of n. A key that is no whole number is a ValueError of `put`."""
        return Rule(_core.remember_every_key(_positive(n)), f"every_key({n})")

    @staticmethod
    def costly(threshold: float = 100.0) -> Rule:
        """Keeps values that cost at least this much to recompute."""
        return Rule(_core.remember_costly(arguments.real(threshold, "[store] threshold")), f"costly({threshold})")


class Store(Handle):
    """Keeps arrays by key, in memory and on disk, each within a hard budget in bytes.

    A value is kept in the form that a codec makes. Two rules decide: `remember` chooses which values are kept at all, and
    `evict` which value is evicted from memory when the next one does not fit. A value evicted from memory moves
    to disk if there is one, and is dropped otherwise. A value evicted from disk is dropped.

    Bytes are the bytes really held, and a tier never passes its budget, not even for a moment. The arrays that `get` and
    `take` return are yours and do not count. Every function may be called from any thread, and other threads of Python run
    while one stores, reads or codes.

    Keys are texts or whole numbers; 7 and "7" are the same key. `with` closes the store in the end.

    Args:
        memory: the budget of memory, an int or text like "64MiB"; None: no limit.
        disk: a folder, which has to exist; None: no disk.
        disk_budget: the most bytes on disk; None: no limit.
        keep: True: the values outlive the store and its process, in the folder `reprise-kept` of the disk. Another store
            that is made there has them from the start. A value is safe when it is on disk: see `offload` and `wait`; the
            end of the store sees to that, too.
        remember: a rule of `reprise.remember`, or a function of an `Offer` that returns True for a value to keep.
        evict: "oldest", the one put first; "cheapest", the one with the least cost for each byte; or "nothing": the new
            value is refused.
        codec: the name of one of `reprise.codecs()`; None: exact. A value is kept exactly if the codec cannot code it,
            or if the room for coding it, which counts, is more than `memory`: for zstd some 30 KB to 600 KB more than the
            value. `statistics()["kept_exactly"]` counts them.
    """

    def __init__(
        self,
        memory: int | str | None = None,
        *,
        disk: str | os.PathLike[str] | None = None,
        disk_budget: int | str | None = None,
        keep: bool = False,
        remember: Rule | Callable[[Offer], object] | None = None,
        evict: Literal["oldest", "cheapest", "nothing"] = "oldest",
        codec: str | None = None,
    ) -> None:
        if disk is None and (arguments.flag(keep, "[store] keep") or disk_budget is not None):
            raise ValueError("keep and disk_budget are about a disk, and there is none: give disk=")
        self._remember = _rule(remember)
        self._core = _core.Store(
            None if memory is None else bytes_of(memory, what="[store] memory"),
            None if disk is None else arguments.path(disk, "[store] disk"),
            None if disk_budget is None else bytes_of(disk_budget, what="[store] disk_budget"),
            arguments.flag(keep, "[store] keep"),
            self._library_rule(),
            arguments.text(evict, "[store] evict"),
            _codec(codec),
        )

    # ---- values

    def put(self, key: Key, array: npt.ArrayLike, *, cost: float = 0.0, codec: str | None = None) -> str:
        """Stores a copy, and replaces the value that has this key.

        Args:
            key: a text or a whole number.
            array: an array of numbers. One that is contiguous is read where it is.
            cost: of recomputing the value.
            codec: for this value; None: the store's.

        Returns "stored", "not remembered" (the rule said no, or the store is switched off) or "refused" (it does not fit
        now, and nothing may be evicted for it). DoesNotFit if it is larger than the budget of every tier.
        """
        numbers = np.asarray(array)
        if type(array) is not np.ndarray and isinstance(array, np.ndarray):
            raise TypeError(f"a store takes arrays of numpy, and not {type(array).__name__!r}: np.asarray() makes one of it")
        if numbers.dtype.name not in NUMBERS or not numbers.dtype.isnative:
            raise TypeError(f"a store takes arrays of numbers, and not of dtype {numbers.dtype}: {', '.join(sorted(NUMBERS))}")
        rule = None if isinstance(self._remember, Rule) else self._asked
        contiguous = np.ascontiguousarray(numbers).reshape(numbers.shape)
        return self._core.put(_key(key), contiguous, arguments.real(cost, "[store] cost"), _codec(codec), rule)

    def get(self, key: Key) -> npt.NDArray[Any]:
        """Returns the value, decoded. NotStored, which is a KeyError, if there is none, with the reason."""
        return self._core.get(_key(key))

    def take(self, key: Key) -> npt.NDArray[Any]:
        """Returns the value as `get` does, and removes it from the store."""
        return self._core.take(_key(key))

    def find(self, key: Key) -> npt.NDArray[Any] | None:
        """Returns the value as `get` does, or None if there is none."""
        return self._core.find(_key(key))

    def erase(self, key: Key) -> bool:
        """Removes the value of this key, and returns whether there was one."""
        return self._core.erase(_key(key))

    def clear(self) -> None:
        """Removes everything, with the files. Statistics go on."""
        self._core.clear()

    # ---- ahead of time, by a thread of the store's own

    def prefetch(self, keys: Iterable[Key]) -> None:
        """Moves these values from disk into memory, in this order, as far as there is room without evicting anything; the
        rest is moved as room comes free. A get in the meantime waits for its own value only."""
        self._core.prefetch(_keys(keys))

    def offload(self, keys: Iterable[Key]) -> None:
        """Moves these values to disk as if memory had given them up, but keeps those for which there is no room there."""
        self._core.offload(_keys(keys))

    def wait(self) -> None:
        """Waits until every prefetch and offload is done, or cannot go on for lack of room. Raises the first DiskError of an
        offload since the last call."""
        self._core.wait()

    # ---- questions

    def __contains__(self, key: Key) -> bool:
        return self._core.contains(_key(key))

    def contains(self, key: Key) -> bool:
        """True if there is a value under this key; the same as `key in store`."""
        return key in self

    def __len__(self) -> int:
        return self._core.size()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        """Returns all keys, ordered as texts."""
        return self._core.keys()

    def describe(self, key: Key) -> dict[str, Any]:
        """Describes a value without reading it: "number" of its put, "bytes" that it has, coded, "plain_bytes", "cost",
        "tier", "codec", "dtype", "shape"."""
        return self._core.describe(_key(key))

    def bytes(self, tier: Literal["memory", "disk"] = "memory") -> int:
        """Returns the bytes that are held now."""
        return self._core.bytes(arguments.text(tier, "[store] tier"))

    def budget(self, tier: Literal["memory", "disk"] = "memory") -> int | None:
        """Returns the budget of a tier; None if it has no limit, 0 for a disk that is not there."""
        return self._core.budget(arguments.text(tier, "[store] tier"))

    def statistics(self) -> dict[str, int]:
        """Returns the numbers of the store: values "stored_ever", "in_memory", "on_disk"; "puts", "gets", "hits", "misses",
        "evictions", "dropped", "moves_to_disk", "moves_to_memory", "not_remembered", "refused", "kept_exactly"; bytes:
        "bytes", "peak_bytes", "disk_bytes", "peak_disk_bytes", "before_coding", "after_coding"."""
        return self._core.statistics()

    def reset_statistics(self) -> None:
        """Counts from zero; bytes and values that are there stay counted."""
        self._core.reset_statistics()

    # ---- settings

    @property
    def enabled(self) -> bool:
        """False: every put is "not remembered", and the values that are there stay."""
        return self._core.get_enabled()

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._core.set_enabled(arguments.flag(on, "[store] enabled"))

    @property
    def remember(self) -> Rule | Callable[[Offer], object]:
        """The rule that chooses which values are kept."""
        return self._remember

    @remember.setter
    def remember(self, rule: Rule | Callable[[Offer], object]) -> None:
        self._remember = _rule(rule)
        self._core.set_remember(self._library_rule())

    # ---- the end

    def close(self) -> None:
        """Ends the store: its files are removed, or complete if they are kept. Everything else is an Error from now on."""
        self._core.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._core.closed():
            return "<reprise.Store, closed>"
        budget = self.budget()
        within = "" if budget is None else f" within {_core.format_bytes(budget)}"
        return f"<reprise.Store: {len(self)} values, {_core.format_bytes(self.bytes())} in memory{within}>"

    def _library_rule(self) -> _core.LibraryRule | None:
        return self._remember._core if isinstance(self._remember, Rule) else None

    def _asked(self, *offer: Any) -> object:
        rule = self._remember
        return True if isinstance(rule, Rule) else rule(Offer(*offer))


def codecs() -> dict[str, str]:
    """The names of all codecs, each with a line that describes it: what it does, and, if it loses something, the bound of its
    error."""
    return _core.codecs()


def _rule(rule: Rule | Callable[[Offer], object] | None) -> Rule | Callable[[Offer], object]:
    if rule is None:
        return remember.all()
    if not callable(rule) and not isinstance(rule, Rule):
        raise TypeError(f"remember is {rule!r}: it must be one of reprise.remember, or a function of an Offer")
    return rule


def _codec(name: str | None) -> str | None:
    return None if name is None else arguments.text(name, "[store] codec")


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return str(int(key))
    raise TypeError(f"a key is {key!r}: it must be a text or a whole number")


def _keys(keys: Iterable[Key]) -> list[str]:
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable):
        raise TypeError(f"keys are {keys!r}: they must be a list of keys")
    return [_key(key) for key in keys]


def _positive(n: int) -> int:
    if whole(n, "n") < 0:
        raise ValueError(f"n is {n}: it must be positive")
    return n


__all__ = ["Offer", "Rule", "Store", "codecs", "remember"]

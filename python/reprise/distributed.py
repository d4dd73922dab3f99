"""Processes that train together end together.

A collective operation waits for all ranks. If one of them cannot keep its budget it never comes, and the others wait until
they time out. So the rank with the error tells the others through the store of their process group before it raises it;
what they wait for fails as soon as its process ends, and they raise that rank's `BudgetError` instead of a lost connection.

A thread looks into the store four times a second. A step costs nothing, and nothing is sent unless there is an error.
"""
from __future__ import annotations

import atexit
import json
import threading
import time
from typing import Any

import torch.distributed as dist

from .errors import BudgetError

_KEY = "reprise/budget_error"
_HEARD = "reprise/budget_error_heard"  # by how many ranks
_INTERVAL = 0.25  # seconds between two looks
_PATIENCE = 10.0  # seconds that a rank with an error waits for others to hear of it

_FACTS = ("budget", "live", "requested", "pinned", "smallest_feasible", "floor", "floor_set_by", "where")


class Group:
    """The default process group, as far as errors are concerned."""

    def __init__(self, group: Any) -> None:
        self.group = group
        self._rank, self._size = dist.get_rank(), dist.get_world_size()
        # A connection of its own: who waits on the program's would be waited for.
        store: Any = dist.distributed_c10d._get_default_store()
        self._store = store.clone()
        self._told: dict[str, Any] | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="reprise: errors of other ranks", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises the error of another rank, if there is one."""
        if self._told is not None:
            raise self._error()

    def step_failed(self, error: BaseException) -> None:
        """Tells the other ranks about an error of this one; raises that of another one instead, if there is one."""
        if self._told is None and isinstance(error, BudgetError):
            self._tell(error)
        if self._told is not None:  # perhaps another rank's was the first
            raise self._error() from error

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _listen(self) -> None:
        try:
            while not self._over.wait(_INTERVAL):
                if self._store.check([_KEY]):
                    told = json.loads(self._store.get(_KEY))
                    if told["rank"] != self._rank:
                        self._told = told
                    self._store.add(_HEARD, 1)
                    return
        except RuntimeError:  # the store is gone: so is the group
            pass

    def _tell(self, error: BudgetError) -> None:
        error.rank = self._rank
        text = error.args[0] if error.args else ""
        error.args = (f"[rank {self._rank}] {text}",)
        facts = {name: getattr(error, name) for name in _FACTS}
        told = json.dumps({"rank": self._rank, "text": error.args[0], **facts})
        try:
            store = dist.distributed_c10d._get_default_store()
            store.compare_set(_KEY, "", told)  # the first error is the one that all raise
            until = time.monotonic() + _PATIENCE
            while store.add(_HEARD, 0) < self._size and time.monotonic() < until:
                time.sleep(0.02)
        except (RuntimeError, ValueError):  # the store or the group is gone: nobody is left to be told
            pass

    def _error(self) -> BudgetError:
        told = self._told
        assert told is not None
        error = BudgetError(told["text"])
        error.rank = told["rank"]
        for name in _FACTS:
            setattr(error, name, told[name])
        error.pinned = [(what, size) for what, size in told["pinned"]]
        return error


_group: Group | None = None


def group() -> Group | None:
    """Returns the default process group, or None if this process is alone."""
    global _group
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return None
    present = dist.group.WORLD
    if _group is None or _group.group is not present:
        _close()
        _group = Group(present)
    return _group


def _close() -> None:
    global _group
    if _group is not None:
        _group.close()
        _group = None


atexit.register(_close)

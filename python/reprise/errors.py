"""Exceptions. After any of them the process, the model, the optimizer and the session go on working."""
from __future__ import annotations

from . import _core


class Error(RuntimeError):
    """The base of all errors of Reprise that are not about a wrong argument (those are ValueError or TypeError)."""


class SessionError(Error):
    """The base of what goes wrong in a session."""


class BudgetError(SessionError):
    """An allocation does not fit the budget, and nothing is left to evict.

    It is raised before the first byte over, in the thread that allocates. Catch it outside of the step.

    Attributes:
        budget: the budget that was in force, in bytes.
        live: live bytes that cannot be evicted.
        requested: the bytes of this allocation.
        pinned: the owners of the live bytes, as (what, bytes), largest first.
        smallest_feasible: the smallest budget with a proven plan, or None if none is known.
        floor: no plan can do with less, or None if that is not known.
        floor_set_by: the moment that sets the floor, and what it needs.
        where: the operator, or the node of backward, that was under way.
        not_repeated: why `Session.run` did not run the step again under a plan, or that it did in vain.
        rank: the process that could not keep its budget, if several train together (`reprise.distributed`).
    """

    budget: int | None = None
    live: int | None = None
    requested: int | None = None
    pinned: list[tuple[str, int]] = []
    smallest_feasible: int | None = None
    floor: int | None = None
    floor_set_by: str = ""
    where: str = ""
    not_repeated: str = ""
    rank: int | None = None

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        for name, value in _core.budget_facts(str(args[0]) if args else "").items():
            setattr(self, name, value)


class MismatchError(SessionError):
    """A value that came back is not the one that left, bit for bit: it was recomputed, and is kept from now on, or it
    came back from a disk or from memory of the host."""


class ChangedInputError(SessionError):
    """A tensor that a recipe needs was written while nobody recorded: by another thread, between steps, or after a
    function that is checkpointed had returned."""


class ChainError(Error):
    """What goes wrong in a chain. The pass is over, and the chain can be run again."""


class NotStored(Error, KeyError):
    """A store has no value under this key. If one was offered, the text says why it is not there."""

    __str__ = Error.__str__


class DoesNotFit(Error):
    """A value is larger than the budget of every tier of a store."""


class DiskError(Error, OSError):
    """A disk failed, or a file on it is damaged. The text names the file or folder, and the system's reason."""

    __str__ = Error.__str__


_core.set_errors(
    Error, SessionError, BudgetError, MismatchError, ChangedInputError, ChainError, NotStored, DoesNotFit, DiskError
)

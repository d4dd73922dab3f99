"""Exceptions. After any of them the process, the model, the optimizer and the session go on working."""
from __future__ import annotations

from . import _core


class Error(RuntimeError):
    """The base of all errors of Reprise that are not about a wrong argument (those are ValueError or TypeError)."""


class SessionError(Error):
    """The base of what goes wrong in a session."""


class BudgetError(SessionError):
    """An allocation does not fit the budget, and nothing is left to forget.

    It is raised before the first byte over, in the thread that allocates. Catch it outside of the step.

    Attributes:
        budget: the budget that was in force, in bytes.
        live: live bytes that cannot be forgotten.
        requested: the bytes of this allocation.
        pinned: the owners of the live bytes, as (what, bytes), largest first.
        smallest_feasible: the smallest budget with a proven plan, or None if none is known.
    """

    budget: int | None = None
    live: int | None = None
    requested: int | None = None
    pinned: list[tuple[str, int]] = []
    smallest_feasible: int | None = None

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        for name, value in _core.budget_facts(str(args[0]) if args else "").items():
            setattr(self, name, value)


class MismatchError(SessionError):
    """A rebuilt value is not the forgotten one, bit for bit. From now on this value is kept."""


class ChangedInputError(SessionError):
    """A tensor that a recipe needs was written while nobody recorded: by another thread, between steps, or after a
    function that is checkpointed had returned."""


_core.set_errors(Error, SessionError, BudgetError, MismatchError, ChangedInputError)

"""Reprise in transformers.Trainer.

    trainer = Trainer(..., callbacks=[reprise.integrations.transformers.BudgetCallback("8GiB")])
"""
from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from ..session import Session, Step


class BudgetCallback(TrainerCallback):
    """Runs every optimization step of a Trainer, with all its accumulated batches, inside a budget."""

    def __init__(self, budget: int | str | None = None, **options: Any) -> None:
        #: The session, whose summary says what came of it.
        self.session = Session(budget, **options)
        self._step: Step | None = None

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end()
        self._step = self.session.step()
        self._step.__enter__()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end()

    def _end(self) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.__exit__(None, None, None)

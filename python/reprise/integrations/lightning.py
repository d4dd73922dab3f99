"""Reprise in a Trainer of Lightning.

    trainer = lightning.Trainer(..., callbacks=[reprise.integrations.lightning.BudgetCallback("8GiB")])
"""
from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback

from ..session import Session, Step


class BudgetCallback(Callback):
    """Runs every training batch inside a budget: forward, backward and the optimizer."""

    def __init__(self, budget: int | str | None = None, **options: Any) -> None:
        super().__init__()
        #: The session, whose summary says what came of it.
        self.session = Session(budget, **options)
        self._step: Step | None = None

    def on_train_batch_start(self, *args: Any, **kwargs: Any) -> None:
        self._end()
        step = self.session.step()
        step.__enter__()
        self._step = step  # if it has begun

    def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None:
        self._end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end(exception)

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        self._end()

    def _end(self, error: BaseException | None = None) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.__exit__(None if error is None else type(error), error, None)

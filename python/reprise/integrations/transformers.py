"""Reprise in transformers.Trainer.

    trainer = Trainer(..., callbacks=[reprise.integrations.transformers.BudgetCallback("8GiB")])

A Trainer tells its callbacks nothing about errors, and an open step has to hear of them: it ends with the error, and tells
the other processes if several train together. So this module goes around `Trainer.train`.
"""
from __future__ import annotations

import functools
from typing import Any

from transformers import Trainer, TrainerCallback

from ..session import Session, Step


class BudgetCallback(TrainerCallback):
    """Runs every optimization step of a Trainer, with all its accumulated batches, inside a budget."""

    def __init__(self, budget: int | str | None = None, **options: Any) -> None:
        #: The session, whose summary says what came of it.
        self.session = Session(budget, **options)
        self._step: Step | None = None

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end()
        step = self.session.step()
        step.__enter__()
        self._step = step  # if it has begun

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._end()

    def _end(self, error: BaseException | None = None) -> None:
        step, self._step = self._step, None
        if step is not None:
            step.__exit__(None if error is None else type(error), error, None)


_train = Trainer.train


@functools.wraps(_train)
def _train_and_tell(self: Trainer, *args: Any, **kwargs: Any) -> Any:
    try:
        return _train(self, *args, **kwargs)
    except BaseException as error:
        for callback in self.callback_handler.callbacks:
            if isinstance(callback, BudgetCallback):
                callback._end(error)
        raise


setattr(Trainer, "train", _train_and_tell)

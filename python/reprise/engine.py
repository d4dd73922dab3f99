"""Where backward begins and ends.

torch's Python half runs its own engine directly, not the default one of LibTorch, so that Reprise has to see backward here.
"""
from __future__ import annotations

from typing import Any

import torch

from . import _core

_Engine: Any = type(torch.autograd.Variable._execution_engine)


class WatchedEngine(_Engine):  # type: ignore[misc]
    """torch's engine, with an eye on where backward begins and ends."""

    def run_backward(self, *args: Any, **kwargs: Any) -> Any:
        create_graph = kwargs["create_graph"] if "create_graph" in kwargs else (len(args) > 3 and args[3])
        run = _core.BackwardRun(bool(create_graph))
        try:
            gradients = super().run_backward(*args, **kwargs)
            run.succeeded()
            return gradients
        finally:
            del run


def install() -> None:
    """Puts the engine in its place, once."""
    variable: Any = torch.autograd.Variable
    if not isinstance(variable._execution_engine, WatchedEngine):
        variable._execution_engine = WatchedEngine()

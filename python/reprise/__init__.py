"""Reprise trains any PyTorch model inside a hard byte budget, bit for bit.

    import reprise

    session = reprise.Session(budget="2GiB")
    for batch in loader:
        with session.step():          # everything inside stays within the budget
            loss = model(batch).loss
            loss.backward()           # what was evicted is recomputed here
            optimizer.step()
            optimizer.zero_grad()
    print(session)

`Session` decides by itself what to evict and recompute; `checkpoint` lets you say it by hand, with the
signature of torch.utils.checkpoint. `measure` runs a step once and tells what it needs. `plan`, `curve`, `fit` and
`simulate` work on traces: of recorded steps, of files, and of graphs of any kind.

A step that does not fit raises `BudgetError` before the first byte over, with the numbers; after that and every other `Error`
everything goes on working. `reprise.integrations` has callbacks for transformers and Lightning, and
`python -m reprise run --budget 2GiB train.py` runs a script within a budget that does not know of it. docs/python.md tells all
of it in order.

Without a model of PyTorch's: `Chain` is checkpointing for closures on arrays of numpy, such as steps of a solver and their
adjoints, with the schedules of `reprise.schedule` (Revolve, H-Revolve, a byte budget and more), and `Store` keeps arrays by
key within budgets of memory and disk.
"""
from __future__ import annotations

import torch as _torch  # first: its engine has to be there before ours goes in front of it

from . import _built

# Before the library is loaded: it knows the insides of one version of torch.
if _torch.__version__.split("+")[0] != _built.torch_version:
    raise ImportError(
        f"reprise {_built.version} was built for torch {_built.torch_version}, and torch {_torch.__version__} is installed. "
        "Build it for this one, in a checkout of Reprise: pip install --force-reinstall --no-deps ."
    )

from . import _solver  # noqa: E402

_solver.find()

from . import compiled as _compiled  # noqa: E402
from . import engine as _engine  # noqa: E402
from . import schedule  # noqa: E402
from .chain import Chain, ChainLoop, Progress, Resumed  # noqa: E402
from .checkpointing import checkpoint, checkpoint_sequential  # noqa: E402
from .errors import (  # noqa: E402
    BudgetError,
    ChainError,
    ChangedInputError,
    DiskError,
    DoesNotFit,
    Error,
    MismatchError,
    NotStored,
    SessionError,
)
from .planning import Curve, Fit, Plan, PlanResult, Trace, curve, fit, plan, planners, simulate  # noqa: E402
from .session import Largest, Measurement, Session, Step, fraction_of_memory, live_bytes, measure  # noqa: E402
from .store import Offer, Store, codecs, remember  # noqa: E402

_engine.install()
_compiled.install()

__version__: str = _built.version

__all__ = [
    "BudgetError",
    "Chain",
    "ChainError",
    "ChainLoop",
    "ChangedInputError",
    "Curve",
    "DiskError",
    "DoesNotFit",
    "Error",
    "Fit",
    "Largest",
    "Measurement",
    "MismatchError",
    "NotStored",
    "Offer",
    "Plan",
    "PlanResult",
    "Progress",
    "Resumed",
    "Session",
    "SessionError",
    "Step",
    "Store",
    "Trace",
    "checkpoint",
    "checkpoint_sequential",
    "codecs",
    "curve",
    "fit",
    "fraction_of_memory",
    "live_bytes",
    "measure",
    "plan",
    "planners",
    "remember",
    "schedule",
    "simulate",
]

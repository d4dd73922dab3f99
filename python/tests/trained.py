"""A few steps of training, written down bit for bit."""
from __future__ import annotations

import contextlib
import dataclasses
import gc
import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import torch

import reprise
from reprise import _core


def digest(tensors: Iterable[torch.Tensor | None]) -> str:
    """The bits of these tensors, as one word."""
    hashed = hashlib.sha256()
    for tensor in tensors:
        if tensor is None:
            hashed.update(b"none")
        elif tensor.numel() > 0:
            hashed.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return hashed.hexdigest()[:16]


@dataclasses.dataclass
class Record:
    """What came of training: every number with all its bits, and the peak above what was there before each step."""

    steps: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    peaks: list[int] = dataclasses.field(default_factory=list)
    before: list[int] = dataclasses.field(default_factory=list)

    @property
    def peak(self) -> int:
        """Of the last step."""
        return self.peaks[-1]

    def budget(self, share: float) -> int:
        """What was there before the last step, and this share of what it added."""
        return int(self.before[-1] + share * (self.peaks[-1] - self.before[-1]))


#: Makes a model and a function from the model and the number of a step to the loss.
Maker = Callable[[], tuple[torch.nn.Module, Callable[[torch.nn.Module, int], torch.Tensor]]]


def train(
    make: Maker, session: reprise.Session | None = None, steps: int = 5, accumulate: int = 1, around: Any = None
) -> Record:
    """Trains from a fixed seed with AdamW, in steps of the session if there is one."""
    gc.collect()
    torch.manual_seed(7)
    model, loss_of = make()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    record = Record()
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        gc.collect()
        _core.mark_peak()
        record.before.append(_core.live_bytes())
        losses = []
        with session.step() if session else contextlib.nullcontext(), around() if around else contextlib.nullcontext():
            for part in range(accumulate):
                loss = loss_of(model, step * accumulate + part) / accumulate
                loss.backward()
                losses.append(loss.item())
                del loss
            optimizer.step()
        record.peaks.append(_core.peak_bytes())
        record.steps.append(
            {
                "losses": losses,
                "gradients": digest(p.grad for p in model.parameters()),
                "parameters": digest(model.parameters()),
                "buffers": digest(model.buffers()),
                "random": digest([torch.get_rng_state()]),
            }
        )
        if session:
            session.wait_for_plan()
    return record

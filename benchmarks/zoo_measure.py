"""One architecture of the zoo: a plain step against gradient checkpointing, and against Reprise within budgets.

    zoo_measure.py NAME REPETITIONS PLANNING_SECONDS LIMIT

measures one in this process, for about LIMIT seconds at most, and prints the results as JSON; `./bench zoo` starts it.
"""
from __future__ import annotations

import contextlib
import dataclasses
import datetime
import gc
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

# Virtual machines exist that claim to have tiles, and plain torch ends with an illegal instruction there.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import torch
from zoo_models import ARCHITECTURES

import reprise
from reprise import _core

SHARES = (0.6, 0.4)  # budgets, of what a plain step adds to what is there before it
MORE = (0, 1, 2, 4, 8)  # percent of that, on top of the smallest budget with a plan, until it is kept
FEWEST = 3  # repetitions, however late it is


@dataclasses.dataclass
class Sample:
    """What one step took."""

    seconds: float  # CPU time of the thread that trains
    peak: int  # above the level
    bits: str  # of everything that came of it


class Training:
    """Steps of forward and backward that all begin alike: the same weights, buffers, batch and random numbers."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(7)
        self.model, self.loss_of = ARCHITECTURES[name].make()
        self.model.train()
        self.buffers = [buffer.clone() for buffer in self.model.buffers()]
        self.reset()
        gc.freeze()  # what there is by now need not be looked through after every step
        self.level = reprise.live_bytes()
        self.plain()
        self.bits = self.plain().bits

    def reset(self) -> None:
        self.model.zero_grad(set_to_none=True)
        for buffer, before in zip(self.model.buffers(), self.buffers, strict=True):
            buffer.copy_(before)
        torch.manual_seed(7)
        gc.collect()

    def step(self, around: contextlib.AbstractContextManager[Any]) -> Sample:
        self.reset()
        _core.mark_peak()
        start = time.thread_time()
        with around:
            loss = self.loss_of(self.model, 0)
            loss.backward()
        seconds = time.thread_time() - start
        return Sample(seconds, _core.peak_bytes() - self.level, self.outcome(loss))

    def outcome(self, loss: torch.Tensor) -> str:
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        hashed = hashlib.sha256()
        for tensor in [loss, *gradients, *self.model.buffers(), torch.get_rng_state()]:
            hashed.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy())
        return hashed.hexdigest()

    def plain(self) -> Sample:
        return self.step(contextlib.nullcontext())

    def checkpointed(self) -> Sample:
        self.model.gradient_checkpointing_enable()
        try:
            return self.step(contextlib.nullcontext())
        finally:
            self.model.gradient_checkpointing_disable()


@dataclasses.dataclass
class Side:
    """One way to run a step, and what came of it."""

    label: str
    step: Callable[[], Sample]
    budget: int | None = None  # above the level
    session: reprise.Session | None = None
    ratios: list[float] = dataclasses.field(default_factory=list)  # of its time to that of the plain steps beside it
    peak: int = 0
    equal: bool = True  # every bit is that of a plain step
    failure: str = ""  # why there are no ratios

    def add(self, sample: Sample, bits: str) -> Sample:
        self.peak = max(self.peak, sample.peak)
        self.equal = self.equal and sample.bits == bits
        return sample

    def results(self) -> dict[str, Any]:
        result = {"label": self.label, "budget": self.budget, "peak": self.peak, "equal": self.equal,
                  "ratios": [round(ratio, 4) for ratio in self.ratios], "failure": self.failure}  # fmt: skip
        if self.session is not None:
            summary = self.session.summary()
            for name in ("followed_plan", "promised_overhead", "traces", "divergences"):
                result[name] = summary[name]
        return result


# ---- Reprise ---------------------------------------------------------------------------------------------------------


def session_for(training: Training, plain_peak: int, seconds: float, label: str) -> reprise.Session:
    """A session in which a plain step fits. What is measured comes after planning, so that may take its time."""
    return reprise.Session(training.level + plain_peak, planning_seconds=seconds, planning_share=math.inf, name=label)


def side_within(training: Training, label: str, budget: int, plain_peak: int, seconds: float) -> Side:
    """A session that has seen a step without need, and has planned it for this budget. Plans reach lower than the online
    policy does, which decides as long as there are none."""
    session = session_for(training, plain_peak, seconds, label)
    side = Side(label, lambda: training.step(session.step()), budget, session)
    try:
        side.add(side.step(), training.bits)
        side.peak = 0
        session.wait_for_plan()
        session.budget = training.level + budget
        for count in range(1, 13):
            session.wait_for_plan()
            side.add(side.step(), training.bits)
            # Costs are known, and planned with, after four steps.
            if count >= 6 and session.summary()["followed_plan"]:
                break
        session.wait_for_plan()
    except reprise.BudgetError as error:
        side.failure = f"cannot be kept: {error}"  # without the exception, which keeps the frames that it came through
    return side


def smallest(training: Training, plain_peak: int, seconds: float, until: float) -> Side:
    """The smallest budget that the planner finds a plan for; if it is not kept, a little more, until it is too late."""
    session = session_for(training, plain_peak, seconds, "smallest")
    training.step(session.step())
    session.wait_for_plan()
    session.budget = training.level + plain_peak // 50
    session.wait_for_plan()
    feasible = session.summary()["smallest_feasible_bytes"]
    del session
    if feasible is None:
        return Side("smallest", training.plain, failure="no smallest budget is known")
    for more in MORE:
        budget = feasible - training.level + more * plain_peak // 100
        side = side_within(training, "smallest", budget, plain_peak, seconds)
        if not side.failure or time.monotonic() > until:
            break
    return side


# ---- all sides in one run --------------------------------------------------------------------------------------------


def take_turns(training: Training, plain: Side, sides: list[Side]) -> list[float]:
    """One step of each side between two plain ones; returns the times of these. A side that fails takes no more turns."""
    before = plain.add(plain.step(), training.bits).seconds
    times = [before]
    for side in sides:
        if side.failure:
            continue
        try:
            seconds = side.add(side.step(), training.bits).seconds
        except reprise.BudgetError as error:
            side.failure = f"was kept at first, and then not: {error}"
            side.ratios.clear()
            continue
        after = plain.add(plain.step(), training.bits).seconds
        side.ratios.append(2 * seconds / (before + after))
        times.append(after)
        before = after
    return times


def measure(name: str, repetitions: int, seconds: float, limit: float) -> dict[str, Any]:
    """Measures one architecture. `seconds`: for each plan. After `limit` seconds nothing is begun that can be left out."""
    until = time.monotonic() + limit
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    _core.keep_all_pages()  # or a plain step pays for the pages that the limit of the step before gave back
    load = os.getloadavg()[0]
    training = Training(name)
    plain = Side("plain", training.plain)
    plain_peak = plain.add(plain.step(), training.bits).peak

    checkpoint = Side("gradient checkpointing", training.checkpointed)
    sides = []
    try:
        checkpoint.add(checkpoint.step(), training.bits)
        sides.append(side_within(training, "checkpoint's peak", checkpoint.peak, plain_peak, seconds))
    except ValueError as error:  # transformers' way to say that an architecture has none
        checkpoint.failure = str(error)
    sides += [side_within(training, f"{share}x", int(share * plain_peak), plain_peak, seconds) for share in SHARES]
    sides.append(smallest(training, plain_peak, seconds, until))

    turns = [side for side in [checkpoint, *sides] if not side.failure]
    times: list[float] = []
    done = 0
    while done < repetitions and (done < FEWEST or time.monotonic() < until):
        some = take_turns(training, plain, turns if done % 2 == 0 else turns[::-1])
        plain.ratios += [2 * here / (one + other) for one, here, other in zip(some, some[1:], some[2:])]
        times += some
        done += 1
    print(f"{name}: " + ", ".join(line(side, plain_peak) for side in [checkpoint, *sides]), file=sys.stderr, flush=True)
    return {
        "title": ARCHITECTURES[name].title,
        "date": datetime.date.today().isoformat(),
        "load": round(load, 1),
        "repetitions": done,
        "planning_seconds": seconds,
        "level": training.level,
        "plain": plain.results() | {"seconds": [round(one, 4) for one in times]},
        "checkpoint": checkpoint.results(),
        "reprise": [side.results() for side in sides],
    }


def line(side: Side, plain_peak: int) -> str:
    if side.failure:
        return f"{side.label}: {side.failure}"
    bits = "equal" if side.equal else "OTHER BITS"
    return f"{side.label}: {side.peak / plain_peak:.3f} of plain's peak, {sorted(side.ratios)[len(side.ratios) // 2]:.2f}, {bits}"


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))))

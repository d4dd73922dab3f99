"""What it costs to be watched: steps of tiny operators in a session that has nothing to evict, as ratios to plain steps.

Plain steps, steps of a session with a budget that is never reached, and steps of a session without one take turns. A time
is CPU time of the thread; a ratio is to the mean of the plain steps right before and right after, and its median over all
repetitions is printed. Prints one line for each program, or JSON.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import time
from collections.abc import Callable

import torch

import reprise

OPERATORS = 1000


def numbers() -> Callable[[], torch.Tensor]:
    """Each operator saves a number."""
    x = torch.randn(4, 32, requires_grad=True)

    def run() -> torch.Tensor:
        y = x
        for _ in range(OPERATORS):
            y = y * 1.0001
        return y

    return run


def tensors() -> Callable[[], torch.Tensor]:
    """Each operator saves two tensors."""
    x, w = torch.randn(4, 32, requires_grad=True), torch.ones(4, 32, requires_grad=True)

    def run() -> torch.Tensor:
        y = x
        for _ in range(OPERATORS):
            y = y * w
        return y

    return run


def cells() -> Callable[[], torch.Tensor]:
    """A loop of LSTM cells, 32 wide."""
    cell, xs = torch.nn.LSTMCell(32, 32), torch.randn(100, 4, 32)

    def run() -> torch.Tensor:
        h = c = torch.zeros(4, 32)
        for x in xs.unbind(0):
            h, c = cell(x, (h, c))
        return h

    return run


PROGRAMS = {"numbers": numbers, "tensors": tensors, "cells": cells}


def seconds_of(run: Callable[[], torch.Tensor], session: reprise.Session | None, backward: bool) -> float:
    start = time.thread_time()
    with session.step() if session else contextlib.nullcontext():
        y = run()
        if backward:
            y.sum().backward()
        del y
    return time.thread_time() - start


def measure(run: Callable[[], torch.Tensor], backward: bool, repetitions: int) -> dict[str, float]:
    """The time of a plain step, and of each session as a ratio to it."""
    sessions = {
        "plain again": None,
        "within a budget": reprise.Session(1 << 40, planning_seconds=0),
        "without a budget": reprise.Session(planning_seconds=0),
    }
    for session in sessions.values():
        for _ in range(8):  # until costs are known, and nothing more is measured
            seconds_of(run, session, backward)
    ratios: dict[str, list[float]] = {name: [] for name in sessions}
    plain = [seconds_of(run, None, backward)]
    for _ in range(repetitions):
        for name, session in sessions.items():
            here = seconds_of(run, session, backward)
            plain.append(seconds_of(run, None, backward))
            ratios[name].append(2 * here / (plain[-2] + plain[-1]))
    return {"plain": statistics.median(plain)} | {name: statistics.median(all) for name, all in ratios.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="./bench watch", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=100, help="default: 100")
    parser.add_argument("--only", choices=PROGRAMS, help="default: all programs")
    parser.add_argument("--json", action="store_true", help="prints JSON")
    options = parser.parse_args()
    if options.repetitions < 1:
        parser.error(f"--repetitions is {options.repetitions}: it must be at least 1")
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    results = {}
    for name, make in PROGRAMS.items():
        if options.only in (None, name):
            run = make()
            results[name] = measure(run, True, options.repetitions)
            results[name + ", forward only"] = measure(run, False, options.repetitions)
    if options.json:
        print(json.dumps(results, indent=1))
        return
    for name, result in results.items():
        ratios = ", ".join(f"{side} {ratio:.3f}" for side, ratio in result.items() if side != "plain")
        print(f"{name:<22} plain {result['plain'] * 1e3:.2f} ms; {ratios}")


if __name__ == "__main__":
    main()

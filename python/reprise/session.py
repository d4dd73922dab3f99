"""A session trains inside a byte budget."""
from __future__ import annotations

import html
import itertools
import json
import numbers
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar

import torch

from . import _core, arguments, distributed
from .errors import BudgetError
from .handles import Handle
from .planning import Curve, Fit, Plan, Trace, curve

T = TypeVar("T")

_warns_of_uncounted = True

Verify = Literal["never", "first_time", "always"]
Policy = Mapping[str, str] | Sequence[str]


class Step(Handle):
    """One step of a session, from `with session.step():`. Everything inside stays within the budget, bit for bit.

    Steps of one thread do not overlap, and a step ends on the thread that began it.
    """

    # What __del__ finds if Ctrl-C came before the end of __init__.
    _used = True
    _thread: int | None = None

    def __init__(self, session: Session) -> None:
        self._session = session
        self._group = distributed.group() if session._end_together else None
        self._used = False

    def __enter__(self) -> Step:
        if self._used:
            raise ValueError("[session] step: this step has begun already; every step is a new `with session.step():`")
        self._used = True
        if self._group is not None:
            self._group.check()
        here = threading.get_ident()
        opened: list[None] = []
        try:
            # Ctrl-C raises between two instructions of Python's, and there is none between the call and the note of it.
            opened.extend(itertools.islice(iter(self._session._core.open, object()), 1))
            self._thread = here
            return self
        except BaseException:
            if opened:  # nobody is going to call __exit__
                self._thread = here
                self._close_now()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._thread != threading.get_ident():
                raise RuntimeError("[session] step: it must end on the thread that began it, and that has not happened yet")
            self._session._close(failed=error is not None)
        except BaseException:  # Ctrl-C, right here
            self._close_now()
            raise
        self._thread = None
        own = _core.quoted_error(str(error)) if type(error) is RuntimeError else None  # TorchScript loses the type
        if self._group is not None and error is not None:
            self._group.step_failed(own or error)
        if own is not None:
            raise own from error

    def __del__(self) -> None:
        self._close_now()  # if Ctrl-C came before the first instruction of __exit__
        if not self._used:  # as in `session.step()`, written like `optimizer.step()`
            text = "[session] step: it was never begun, and nothing is within the budget: write `with session.step():`"
            warnings.warn(text, stacklevel=2)

    def _close_now(self) -> None:
        if self._thread == threading.get_ident():
            self._session._core.close(True)
            self._thread = None


class Session(Handle):
    """Trains any model inside a hard byte budget.

        session = reprise.Session(budget="2GiB")
        for batch in loader:
            with session.step():
                loss = model(batch).loss
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        print(session)

    While a step is open, the operators of its thread are recorded. Tensors that autograd saves may be evicted,
    and are recomputed when backward asks for them: the same bits, from the same operators, without
    running your functions again. The budget counts all live bytes of torch's allocator for a device in the process,
    parameters, gradients and optimizer state included, while a step is open; it is checked before every allocation.

    Args:
        budget: bytes, as an int or as text like "2GiB"; a share of what the model needs, like "0.5x", which two
            plain steps measure first; None measures and limits nothing.
        device: whose bytes the budget counts, and whose values are evicted and recomputed: "cpu", "npu:0", or a
            torch.device. None: the device of the parameters, which is the CPU if no accelerator is in use when the first
            step begins. Values on other devices are kept.
        budgets: budgets of several devices at once instead of `budget` and `device`: a dict from devices to bytes, as
            {"npu:0": "8GiB", "cpu": "2GiB"}; None for one that is only counted. Plans are made for the first.
        disk: a folder, which has to exist, for a disk below the memory: values go to files there (are offloaded) instead of
            being evicted, where that is cheaper by the speed that was measured, or where there is no other way to keep to
            the budget. Files are checked, and removed in the end. None: no disk.
        disk_bytes: the most bytes of these files; None: no limit.
        host: bytes of pinned memory of the host, as an int or as text, that values of the accelerator in `device` or
            `budgets` may go to (be offloaded to) instead of being evicted. None: none.
        verify: when a recomputed value is compared with the evicted one, bit by bit: "first_time" for each recipe, "always"
            or "never".
        pack: masks and indices are packed without loss instead of evicted.
        planning_share: the CPU time that planning may take, on a thread of its own, as a share of the CPU time of all
            steps so far, beside a credit of 8 steps (0.5 to 2 seconds); never more than plans can be expected to save.
            0: no plans; `math.inf`: every trace is planned at once.
        planning_seconds: the most time that the planner may spend on a plan. 0: no plans.
        plans: a folder in which plans are kept for the next run of the program.
        policy: what is kept, evicted or packed by hand: a dict from operators ("aten::mm", "aten::mul.Tensor") or
            modules ("encoder.*", after `label_modules`) to "keep", "evict", "pack" or "automatic"; or names of policies that
            there are: "keep_products", "pack_random", "evict_cheap". Operators have the names that traces
            have: one that is composed of others ("aten::linear") is recorded as these ("aten::addmm").
        evict_everything: evicts every value that can be recomputed, and recomputes all of it: slow, and the strictest test.
        end_together: if several processes train together (torch.distributed) and one cannot keep its budget, all of them
            raise its BudgetError instead of waiting for it in a collective operation. False: each is on its own.
        name: of the session, in summaries and errors.
    """

    def __init__(
        self,
        budget: int | str | None = None,
        *,
        device: str | torch.device | None = None,
        budgets: Mapping[str | torch.device, int | str | None] | None = None,
        disk: str | os.PathLike[str] | None = None,
        disk_bytes: int | str | None = None,
        host: int | str | None = None,
        verify: Verify = "first_time",
        pack: bool = True,
        planning_share: float = 0.05,
        planning_seconds: float = 5.0,
        plans: str | os.PathLike[str] | None = None,
        policy: Policy | None = None,
        evict_everything: bool = False,
        end_together: bool = True,
        name: str = "session",
    ) -> None:
        if disk is None and disk_bytes is not None:
            raise ValueError("[session] option disk_bytes is about a disk, and there is none: give disk=")
        self._end_together = arguments.flag(end_together, "[session] option end_together")
        self._seeks_place = device is None and budgets is None and disk is None
        texts = {
            "budget": _budget(budget, "[session] option budget"),
            "device": None if device is None else _device(device, "[session] option device"),
            "budgets": None if budgets is None else ",".join(map("=".join, _device_budgets(budgets, "[session] option budgets"))),
            "disk": None if disk is None else arguments.path(disk, "[session] option disk"),
            "disk_bytes": None if disk_bytes is None else _amount(disk_bytes, "[session] option disk_bytes"),
            "host": None if host is None else _amount(host, "[session] option host"),
            "verify": arguments.need(verify, str, "[session] option verify", "'never', 'first_time' or 'always'"),
            "pack": _switch(arguments.flag(pack, "[session] option pack")),
            "planning_share": repr(arguments.number(planning_share, "[session] option planning_share", finite=False)),
            "planning_seconds": repr(arguments.number(planning_seconds, "[session] option planning_seconds")),
            "plans": None if plans is None else arguments.path(plans, "[session] option plans"),
            "evict_everything": _switch(arguments.flag(evict_everything, "[session] option evict_everything")),
            "name": arguments.text(name, "[session] option name"),
        }
        self._core = _core.Session({key: text for key, text in texts.items() if text is not None}, _rules(policy))

    def step(self) -> Step:
        """Returns a step, to be used with `with`."""
        return Step(self)

    def run(self, train: Callable[[], T]) -> T:
        """Runs a step with this function in it (forward, backward, optimizer) and returns what it returns.

        As `with session.step(): train()`, but a step that does not fit is not given up at once. If it ends with a
        BudgetError, what it has changed is put back: contents of tensors that it overwrote (as statistics of BatchNorm),
        gradients, and torch's random generators. Then it is run without its memory, in a copy of the process (see
        `measure`), planned, and run once more under the plan. So a budget that only a plan can keep will do from the first
        step on.

        The function must do the same when it is called again: what it changes beside tensors, as a counter or an iterator,
        is not put back, so take the batch before. It is not called again if it has written a parameter by then, or after a
        backward, because an optimizer may have begun; or if it has overwritten more than a sixteenth of the budget, as
        gradients that are there already; or if several processes train together. The error says so, and the next step
        follows the plan. If no plan keeps the budget, the error says which budget will do.
        """
        arguments.function(train, "[run] the step")
        results: list[T] = []

        def step() -> None:
            with self.step():
                results.append(train())

        if self._end_together and distributed.group() is not None:  # the others would not run it again
            step()
        else:
            self._core.run_step(step, train)
        return results[-1]

    @property
    def budget(self) -> int | None:
        """The budget in bytes from the next step on; None: no limit. It may be set to whatever the session takes."""
        return self._core.get_budget()

    @budget.setter
    def budget(self, budget: int | str | None) -> None:
        self._core.set_budget(_budget(budget, "[session] budget"), "")

    @property
    def budgets(self) -> dict[str, int | None]:
        """The budgets of all devices of the session, by their names. Those that are set are in force from the next step on."""
        return {device["device"]: device["budget_bytes"] for device in self.summary()["devices"]}

    @budgets.setter
    def budgets(self, budgets: Mapping[str | torch.device, int | str | None]) -> None:
        for device, budget in _device_budgets(budgets, "[session] budgets"):
            self._core.set_budget(budget, device)

    @property
    def enabled(self) -> bool:
        """False: steps run plainly from the next one on; nothing is recorded or limited."""
        return self._core.get_enabled()

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._core.set_enabled(arguments.flag(on, "[session] enabled"))

    def summary(self) -> dict[str, Any]:
        """Returns the numbers of the last step and of all steps so far. `str(session)` prints them for people."""
        result: dict[str, Any] = json.loads(self._core.summary_json())
        return result

    def trace(self) -> Trace | None:
        """Returns the trace of the last complete step that was recorded, or None if there is none yet."""
        trace = self._core.trace()
        return None if trace is None else Trace(trace)

    def plan(self) -> Plan | None:
        """Returns the plan for that trace, or None if there is none. Other bytes may have outgrown it, as `simulate` says
        then: its budget holds, because more is evicted beside it."""
        plan = self._core.plan()
        return None if plan is None else Plan(plan)

    def follow(self, plan: Plan) -> None:
        """Follows this plan, instead of planning, in steps whose trace it is valid for."""
        self._core.follow(arguments.need(plan, Plan, "[session] follow: the plan", "a reprise.Plan")._core)

    def curve(self, *, points: int = 12, seconds: float = 30.0) -> Curve:
        """Plans a number of budgets for the last step: what each byte of budget is worth."""
        return curve(self._known_trace(), points=points, seconds=seconds)

    def measure(self, train: Callable[[], object]) -> Measurement[None]:
        """Runs a step once without the memory that it needs, and returns its peak, its time and its trace.

        The step runs in a copy of the process, so it has no side effects: parameters, gradients, optimizer and
        random generators are what they were. Tensors of 64 KiB and more that it makes are fake there: they share a few
        pages of memory, and their values are not real. An operator that tells the program what is in one (`item`,
        `nonzero`) ends the measurement with a SessionError that names it. What only moves bytes looks cheaper than it is.
        """
        arguments.function(train, "[measure] the step")
        for device in self.budgets:
            if device != "cpu":
                raise ValueError(f"[measure] a step on {device} cannot be run without its memory, only one on the CPU")
        if self._seeks_place and _core.accelerators_in_use():
            raise ValueError(
                "[measure] the session names no device, and an accelerator is in use. Only a step on the CPU can be run without "
                'its memory: if this is one, say so by device="cpu"'
            )
        measured = _core.measure_in_copy(train)
        return Measurement(None, measured.peak, measured.seconds, Trace(measured.trace))

    def largest(
        self,
        train: Callable[[int], object],
        *,
        sizes: Sequence[int],
        at_most: int | None = None,
        steps: int = 3,
        seconds: float = 30.0,
    ) -> Largest:
        """Finds the largest batch, or the longest sequences, that train inside the budget.

        Args:
            train: runs a whole step for a size, forward and backward.
            sizes: the sizes to record, two or more: small ones that fit for certain, but not 1. Two for a batch, three for
                the length of sequences, because attention grows with its square.
            at_most: the largest size to look at; None: 64 times the largest of `sizes`.
            steps: of each of `sizes`.
            seconds: the time for planning.

        From the recorded steps the other sizes are predicted and planned; one real step confirms the largest that has a
        plan, and smaller ones are tried if it does not keep the budget. A program that does something else at another
        size is a ValueError that names the first operator that differs.
        """
        arguments.function(train, "[largest] the step")

        def keeps_budget(size: int) -> bool:
            try:
                with self.step():
                    train(size)
            except BudgetError:
                return False
            return True

        return Largest(
            self._core.largest(
                arguments.wholes(sizes, "[largest] option sizes"),
                None if at_most is None else arguments.whole(at_most, "[largest] option at_most", 1),
                arguments.whole(steps, "[largest] option steps", 0, 10**6),
                arguments.number(seconds, "[largest] option seconds"),
                keeps_budget,
            )
        )

    def report(self, path: str | os.PathLike[str], *, title: str = "A training step", seconds: float = 6.0) -> None:
        """Writes an HTML page about the last step: memory over time, overhead against budget, and what was done to each
        tensor. `seconds` is the time for the curve; 0: the page has none."""
        self._core.write_report(
            arguments.path(path, "[session] report: path"),
            arguments.text(title, "[session] report: title"),
            arguments.number(seconds, "[session] report: seconds"),
        )

    def wait_for_plan(self) -> None:
        """Waits until the plans that this session has asked for are made. Ctrl-C interrupts it."""
        self._core.wait_for_plan()

    def label_modules(self, model: torch.nn.Module) -> None:
        """Labels operators with the modules of this model, for policies and reports, from the next new trace on."""
        module = arguments.need(model, torch.nn.Module, "[session] label_modules: the model", "a torch.nn.Module")
        self._core.label_modules({name: value.data for name, value in module.named_parameters()})

    def touched(self, tensor: torch.Tensor) -> None:
        """Declares that the program wrote into this tensor behind torch's back, as through `tensor.numpy()`. Call it
        after the write, on the thread of the step."""
        self._core.touched(arguments.need(tensor, torch.Tensor, "[session] touched: what was written", "a tensor"))

    def __str__(self) -> str:
        return self._core.summary_text()

    def __repr__(self) -> str:
        budget = "no budget" if self.budget is None else _core.format_bytes(self.budget)
        return f"<reprise.Session {self.summary()['name']!r}: {budget}>"

    def _repr_html_(self) -> str:
        lines = (line.split(":", 1) for line in str(self).splitlines() if line.strip())
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(part.strip())}</td>" for part in row) + "</tr>" for row in lines)
        return f"<table>{rows}</table>"

    def _known_trace(self) -> Trace:
        trace = self.trace()
        if trace is None:
            raise ValueError(
                "[session] no step was recorded from its first operator to the end of backward yet: run one first"
            )
        return trace

    def _close(self, *, failed: bool) -> None:
        limited = _warns_of_uncounted and self.budget is not None
        self._core.close(failed)
        if limited:
            self._warn_of_uncounted()

    def _warn_of_uncounted(self) -> None:
        """After the first step with a budget: once in a process."""
        global _warns_of_uncounted
        _warns_of_uncounted = False
        if uncounted := self.summary()["before_meter_bytes"]:
            warnings.warn(
                f"{_core.format_bytes(uncounted)} of tensors that this step used are not in the budget, because they were "
                "there before reprise was imported: import reprise before the model is built",
                RuntimeWarning,
                stacklevel=4,
            )


class Largest:
    """What `Session.largest` found. `str()` is a table of all sizes.

    Attributes:
        size: the largest size whose step kept the budget.
        peak: the most bytes that were live in that step.
        seconds: the CPU time of the thread in that step, which is the first of its size and has no plan.
        refused: sizes that were predicted to fit, but whose step raised a BudgetError.
        fit: what was predicted for each size, a `Fit`.
    """

    def __init__(self, core: _core.Largest) -> None:
        self._core = core
        self.size: int = core.size
        self.peak: int = core.peak
        self.seconds: float = core.seconds
        self.refused: list[int] = core.refused
        self.fit = Fit(core.fit)

    def __str__(self) -> str:
        return self._core.text()

    def __repr__(self) -> str:
        return f"<reprise.Largest: size {self.size}, peak {_core.format_bytes(self.peak)}>"


class Measurement(Generic[T]):
    """What `measure` found.

    Attributes:
        result: what the function returned; None if `Session.measure` ran it in a copy of the process.
        peak: the most bytes that were live while it ran.
        seconds: the CPU time of the thread.
        trace: its `Trace`; None if there was no backward.
    """

    def __init__(self, result: T, peak: int, seconds: float, trace: Trace | None) -> None:
        self.result = result
        self.peak = peak
        self.seconds = seconds
        self.trace = trace

    def curve(self, *, points: int = 12, seconds: float = 30.0) -> Curve:
        """Plans a number of budgets: what each byte of budget is worth."""
        if self.trace is None:
            raise ValueError("[measure] there is no trace: the function ran no backward")
        return curve(self.trace, points=points, seconds=seconds)

    def __repr__(self) -> str:
        return f"<reprise.Measurement: peak {_core.format_bytes(self.peak)}, {self.seconds:.3f} s>"


def measure(step: Callable[..., T], /, *args: Any, **kwargs: Any) -> Measurement[T]:
    """Runs a training step once, plainly, and returns its peak, its time and its trace. `Session.measure` does the same
    without the memory that the step needs, and without its effects."""
    arguments.function(step, "[measure] the step")
    session = Session(planning_seconds=0, name="measure")
    with session.step():
        result = step(*args, **kwargs)
    summary = session.summary()
    return Measurement(result, summary["peak_last_step_bytes"], summary["step_seconds"], session.trace())


def live_bytes() -> int:
    """Returns the bytes of torch's CPU allocator that are live now, in the whole process."""
    return _core.live_bytes()


def fraction_of_memory(share: float) -> int:
    """Returns this share of the memory that the process may use: of the limit of its control group, or else of the
    machine's memory."""
    return _core.fraction_of_memory(arguments.number(share, "[fraction_of_memory] share"))


def _amount(amount: int | str, what: str, texts: str = "'2GiB'") -> str:
    """An amount as text, which the core reads."""
    if isinstance(amount, bool) or not isinstance(amount, (numbers.Integral, str)):
        raise TypeError(f"{what} is {amount!r}: it must be a number of bytes, or text like {texts}")
    if not isinstance(amount, str) and not 0 <= amount < 2**63:
        raise ValueError(f"{what} is {amount}: it must be from 0 to 2^63 - 1 bytes")
    return amount.strip() if isinstance(amount, str) else str(min(amount, 2**60 - 1))  # the core reads less than 2^60


def _budget(budget: int | str | None, what: str) -> str:
    text = "none" if budget is None else _amount(budget, what, "'2GiB' or '0.5x'")
    return "none" if text == str(2**60 - 1) else text


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _device(device: str | torch.device, what: str) -> str:
    if isinstance(device, torch.device):
        return str(device)
    name = str(arguments.need(device, str, what, 'a device, as "cpu" or torch.device("cpu")'))
    if not name:
        raise ValueError(f"{what} is '': it must name a device")
    return name


def _device_budgets(
    budgets: Mapping[str | torch.device, int | str | None], what: str
) -> list[tuple[str, str]]:
    arguments.need(budgets, Mapping, what, 'a dict from devices to bytes, as {"cpu": "2GiB"}')
    if not budgets:
        raise ValueError(f"{what} is empty: it must have a device")
    return [(_device(device, what), _budget(most, what)) for device, most in budgets.items()]


def _rules(policy: Policy | None) -> list[tuple[str, str]]:
    if policy is None:
        return []
    if isinstance(policy, Mapping):
        return [(str(name), str(choice)) for name, choice in policy.items()]
    if isinstance(policy, str):
        return [(policy, "")]
    if callable(policy):
        raise TypeError("[session] option policy is a function: a policy in Python is a dict by names, see help(reprise.Session)")
    arguments.need(policy, Sequence, "[session] option policy", "a dict by names, or a list of names")
    return [(str(name), "") for name in policy]

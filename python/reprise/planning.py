"""Plans for recorded steps and for graphs of any kind: what to evict, pack and recompute within a budget."""
from __future__ import annotations

import json
import numbers
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _core, arguments


class Trace:
    """What happened in a step, as plain data: operators, values, and the moments in which they are made and needed.

    A trace comes from a session (`Session.trace`), from a file (`Trace.read`), from a dict (`Trace.from_dict`, see
    docs/formats.md) or from a graph of networkx (`Trace.from_networkx`), and can become each of these.
    """

    def __init__(self, core: _core.Trace) -> None:
        self._core = core

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Trace:
        """Reads a trace, or a graph of another project, from a file."""
        return cls(_core.read_trace(arguments.path(path, "[trace] path")))

    @classmethod
    def from_dict(cls, trace: Mapping[str, Any]) -> Trace:
        """Makes a trace of a dict as `to_dict` returns it. "format" and "version" may be left out."""
        return cls(_core.parse_trace(_json("[trace] from_dict", "reprise-trace", trace)))

    @classmethod
    def from_networkx(cls, graph: Any, *, bytes: str = "bytes", cost: str = "cost") -> Trace:
        """Makes a trace of a directed acyclic graph: every node is an operator that makes one value from the values of
        its predecessors, in topological order, and every node is needed once more in the opposite order, as in backward.

        Args:
            graph: a networkx.DiGraph.
            bytes: the attribute of a node that has the bytes of its value; a node without it has a value of 0 bytes.
            cost: the attribute that has the cost of running it; default 1.
        """
        import networkx

        arguments.need(graph, networkx.DiGraph, "[trace] from_networkx: the graph", "a networkx.DiGraph")
        order = list(networkx.topological_sort(graph))
        number = {node: index for index, node in enumerate(order)}
        operators = [
            {
                "name": str(node),
                "inputs": sorted(number[before] for before in graph.predecessors(node)),
                "outputs": [number[node]],
                "cost": graph.nodes[node].get(cost, 1),
            }
            for node in order
        ]
        values = [{"bytes": int(graph.nodes[node].get(bytes, 0)), "maker": number[node]} for node in order]
        moments: list[dict[str, Any]] = [{"runs": number[node]} for node in order]
        moments += [
            {
                "name": f"backward of {node}",
                "needs": sorted({number[node], *(number[before] for before in graph.predecessors(node))}),
                "cost": graph.nodes[node].get(cost, 1),
            }
            for node in reversed(order)
        ]
        return cls.from_dict({"operators": operators, "values": values, "moments": moments})

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace to a file, for the `reprise` command."""
        _core.write_trace(arguments.path(path, "[trace] path"), self._core)

    def to_dict(self) -> dict[str, Any]:
        """Returns the trace as a dict of the file format (docs/formats.md)."""
        result: dict[str, Any] = json.loads(self._core.json())
        return result

    def to_networkx(self) -> Any:
        """Returns a networkx.DiGraph: a node for each operator, by its number, with its "name", its "cost" and the "bytes" of
        what it makes, and an edge from each operator to those that read its results. What comes from outside, and what
        backward needs, is not in it."""
        import networkx

        trace, graph = self.to_dict(), networkx.DiGraph(name=self.name)
        values = trace["values"]
        for number, operator in enumerate(trace["operators"]):
            made = sum(values[value]["bytes"] for value in operator.get("outputs", []))
            graph.add_node(number, name=operator.get("name", ""), cost=operator.get("cost", 0), bytes=made)
            makers = (values[value].get("maker") for value in operator.get("inputs", []))
            graph.add_edges_from((maker, number) for maker in makers if maker is not None)
        return graph

    @property
    def name(self) -> str:
        """The name of the trace."""
        return self._core.name

    @property
    def peak(self) -> int:
        """The peak, in bytes, if nothing is evicted."""
        return self._core.peak()

    @property
    def floor(self) -> int:
        """The peak, in bytes, that no plan can go below."""
        return self._core.floor()

    @property
    def cost(self) -> float:
        """The cost of running everything once; microseconds of CPU time in a trace that was recorded."""
        return self._core.cost()

    def __len__(self) -> int:
        """The number of moments."""
        return self._core.moments

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self._core == other._core

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        peak, floor = _core.format_bytes(self.peak), _core.format_bytes(self.floor)
        return f"<reprise.Trace {self.name!r}: {self._core.operators} operators, peak {peak}, floor {floor}>"


class Plan:
    """An ordered list of actions on a trace: run, replay, drop, put, get."""

    def __init__(self, core: _core.Plan) -> None:
        self._core = core

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Plan:
        """Reads a plan from a file."""
        return cls(_core.read_plan(arguments.path(path, "[plan] path")))

    @classmethod
    def from_dict(cls, plan: Mapping[str, Any]) -> Plan:
        """Makes a plan of a dict as `to_dict` returns it. "format" and "version" may be left out."""
        return cls(_core.parse_plan(_json("[plan] from_dict", "reprise-plan", plan)))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan to a file."""
        _core.write_plan(arguments.path(path, "[plan] path"), self._core)

    def to_dict(self) -> dict[str, Any]:
        """Returns the plan as a dict of the file format (docs/formats.md)."""
        result: dict[str, Any] = json.loads(self._core.json())
        return result

    @property
    def budget(self) -> int:
        """The most bytes that may be live."""
        return self._core.budget

    def __len__(self) -> int:
        """The number of actions."""
        return self._core.actions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._core == other._core

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<reprise.Plan: {len(self)} actions within {_core.format_bytes(self.budget)}>"


class PlanResult:
    """What a planner found. `str()` describes it for people."""

    def __init__(self, core: _core.PlanResult, trace: Trace) -> None:
        self._core = core
        self._trace = trace

    @property
    def status(self) -> str:
        """"optimal", "feasible" or "infeasible"."""
        return self._core.status

    @property
    def plan(self) -> Plan | None:
        """The plan; None if none was found."""
        return None if self.status == "infeasible" else Plan(self._core.plan)

    @property
    def peak(self) -> int:
        """The peak of the plan, in bytes."""
        return self._core.peak

    @property
    def overhead(self) -> float:
        """The added cost as a share of running everything once."""
        return self._core.overhead

    @property
    def gap(self) -> float:
        """How far above the least possible cost the plan can be at most, as a share."""
        return self._core.gap

    @property
    def smallest_feasible(self) -> int | None:
        """If no plan was found: the smallest budget for which one was."""
        return self._core.smallest_feasible

    def to_dict(self) -> dict[str, Any]:
        """Returns all numbers, as `reprise plan --json` prints them."""
        result: dict[str, Any] = json.loads(self._core.json(self._trace._core))
        return result

    def __str__(self) -> str:
        return self._core.text(self._trace._core)

    def __repr__(self) -> str:
        if self.status == "infeasible":
            return "<reprise.PlanResult: infeasible>"
        return f"<reprise.PlanResult: {self.status}, overhead {self.overhead:.1%}>"


class Curve:
    """Overhead against budget: what each byte of budget is worth for a trace."""

    def __init__(self, core: _core.Curve, trace: Trace) -> None:
        self._core = core
        self._trace = trace

    @property
    def points(self) -> list[tuple[int, float]]:
        """Budgets in bytes with their overhead, by ascending budget."""
        return self._core.points()

    @property
    def knee(self) -> int | None:
        """The budget after which more bytes save little time; None if there is none."""
        return self._core.knee

    def to_dict(self) -> dict[str, Any]:
        """Returns all numbers, as `reprise curve --json` prints them."""
        result: dict[str, Any] = json.loads(self._core.json(self._trace._core))
        return result

    def svg(self, title: str = "Overhead against budget") -> str:
        """Returns the curve as an SVG picture."""
        return self._core.svg(title)

    def _repr_html_(self) -> str:
        return self.svg(self._trace.name or "Overhead against budget")

    def __str__(self) -> str:
        return self._core.text()

    def __repr__(self) -> str:
        return f"<reprise.Curve of {len(self.points)} budgets>"


class Fit:
    """Which sizes of a batch, or of sequences, train inside a budget, and what each costs. `str()` is a table."""

    def __init__(self, core: _core.Fit) -> None:
        self._core = core

    @property
    def points(self) -> list[tuple[int, float]]:
        """The sizes that fit with their cost per sample, by ascending size: microseconds if a session recorded the
        traces."""
        return self._core.points()

    @property
    def largest(self) -> int | None:
        """The largest size that has a plan; None if none was found to fit."""
        return self._core.largest

    @property
    def cheapest(self) -> int | None:
        """The size that costs least per sample."""
        return self._core.cheapest

    def to_dict(self) -> dict[str, Any]:
        """Returns all numbers, as `reprise fit --json` prints them."""
        result: dict[str, Any] = json.loads(self._core.json())
        return result

    def svg(self, title: str = "Cost per sample against size") -> str:
        """Returns the fit as an SVG picture."""
        return self._core.svg(title)

    def _repr_html_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        return self._core.text()

    def __repr__(self) -> str:
        return f"<reprise.Fit: {'nothing fits' if self.largest is None else f'up to size {self.largest}'}>"


def plan(
    trace: Trace,
    budget: int | str,
    *,
    planner: str = "best",
    count: int | None = None,
    seconds: float = 5.0,
    moves: int | None = None,
    seed: int = 1,
    start: Plan | None = None,
) -> PlanResult:
    """Plans what to evict and what to replay so that the trace fits the budget.

    Args:
        trace: what happened.
        budget: bytes, as an int or as text: "512MiB", or "0.5x" for half of the peak if nothing is evicted.
        planner: one of `reprise.planners()`; "best" is the one to use.
        count: for "segments" the number of segments, for "every" the number of operators between two that are
            remembered, for "revolve" and "hrevolve" the number of states in memory.
        seconds: the time after which "best" stops; it stops earlier if it can prove that nothing better exists.
        moves: if given, "best" makes so many moves and reads no clock: the same arguments give the same plan.
        seed: of its random numbers.
        start: a plan to search from, too.

    A budget that no plan fits gives a result whose status is "infeasible", not an exception. Ctrl-C interrupts it.
    """
    _need_trace(trace, "[plan]")
    result = _core.make_plan(
        trace._core,
        bytes_of(budget, trace.peak, "[plan] budget"),
        arguments.need(planner, str, "[plan] planner", "a name, see reprise.planners()"),
        None if count is None else arguments.whole(count, "[plan] count", 1, 2**31 - 1),
        arguments.number(seconds, "[plan] seconds"),
        None if moves is None else arguments.whole(moves, "[plan] moves"),
        arguments.whole(seed, "[plan] seed"),
        None if start is None else _need_plan(start, "[plan] start")._core,
    )
    return PlanResult(result, trace)


def curve(trace: Trace, *, points: int = 12, seconds: float = 30.0, seed: int = 1) -> Curve:
    """Plans a number of budgets, from the smallest feasible one to the peak if nothing is evicted."""
    _need_trace(trace, "[curve]")
    points = arguments.whole(points, "[curve] points", 1, 2**31 - 1)
    seconds = arguments.number(seconds, "[curve] seconds")
    return Curve(_core.make_curve(trace._core, points, seconds, arguments.whole(seed, "[curve] seed")), trace)


def fit(
    traces: Mapping[int, Trace],
    budget: int | str,
    *,
    wanted: Iterable[int] = (),
    at_most: int | None = None,
    seconds: float = 30.0,
) -> Fit:
    """Predicts the largest batch, or the longest sequences, that train inside a budget, and what each size costs.

    Args:
        traces: traces of one program, by the size that they were recorded at: two for a batch, three for the length of
            sequences, because attention grows with its square.
        budget: bytes, as an int or as text like "2GiB".
        wanted: the sizes to plan for. Without them the largest that fits is searched for.
        at_most: the largest size to look at in that search; None: 64 times the largest in `traces`.
        seconds: the time for planning all of them.

    Traces that are not of one program are a ValueError that names the first operator in which they differ.
    `Session.largest` records the traces itself, and confirms what it finds by a real step. Ctrl-C interrupts it.
    """
    arguments.need(traces, Mapping, "[fit] the traces", "a dict from sizes to traces")
    for trace in traces.values():
        _need_trace(trace, "[fit]")
    return Fit(
        _core.make_fit(
            [(arguments.whole(size, "[fit] a size", 1), trace._core) for size, trace in traces.items()],
            bytes_of(budget, what="[fit] budget"),
            arguments.wholes(wanted, "[fit] wanted"),
            None if at_most is None else arguments.whole(at_most, "[fit] at_most", 1),
            arguments.number(seconds, "[fit] seconds"),
        )
    )


def simulate(trace: Trace, plan: Plan) -> dict[str, Any]:
    """Executes a plan on a trace, action by action, and returns what it costs and needs, or the rule that it breaks."""
    _need_trace(trace, "[simulate]")
    result: dict[str, Any] = json.loads(_core.simulate_json(trace._core, _need_plan(plan, "[simulate] the plan")._core))
    return result


def planners() -> dict[str, str]:
    """The names of all planners, each with a line that describes it."""
    return _core.planners()


def _need_trace(trace: Any, place: str) -> None:
    arguments.need(trace, Trace, f"{place} the trace", "a reprise.Trace, as of Session.trace() or Trace.read(path)")


def _need_plan(plan: Any, what: str) -> Plan:
    known: Plan = arguments.need(plan, Plan, what, "a reprise.Plan, as of PlanResult.plan or Plan.read(path)")
    return known


def _json(place: str, format: str, content: Any) -> str:
    mapping: Mapping[str, Any] = arguments.need(content, Mapping, f"{place}: the content", "a dict, see docs/formats.md")
    try:
        return json.dumps({"format": format, "version": 1, **mapping})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: the content cannot be written as JSON: {error}") from None


def bytes_of(amount: int | str, peak: int | None = None, what: str = "a budget") -> int:
    """Returns bytes: of an int, of text like "2GiB", and, if there is a peak, of a multiple of it like "0.5x". `what` is the
    name of the amount in errors."""
    if isinstance(amount, bool) or not isinstance(amount, (numbers.Integral, str)):
        texts = "'2GiB'" if peak is None else "'2GiB' or '0.5x'"
        raise TypeError(f"{what} is {amount!r}: it must be a number of bytes, or text like {texts}")
    if not isinstance(amount, str):
        if not 0 <= amount < 2**63:
            raise ValueError(f"{what} is {amount}: it must be from 0 to 2^63 - 1 bytes")
        return int(amount)
    text = amount.strip()
    try:
        return _core.parse_bytes(text) if peak is None else _core.parse_budget(text, peak)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


__all__ = ["Curve", "Fit", "Plan", "PlanResult", "Trace", "curve", "fit", "plan", "planners", "simulate"]

"""Plans without torch: traces from dicts, files and networkx."""
import signal
import threading
from random import Random

import pytest

import reprise


def chain(layers=20, bytes=100):
    """Layers whose results are needed again in the opposite order."""
    return reprise.Trace.from_dict(
        {
            "name": "chain",
            "operators": [
                {"name": f"layer {i}", "inputs": [i - 1] if i else [], "outputs": [i], "cost": 1} for i in range(layers)
            ],
            "values": [{"bytes": bytes, "maker": i} for i in range(layers)],
            "moments": [{"runs": i} for i in range(layers)]
            + [{"name": f"backward {i}", "needs": [i], "cost": 1} for i in reversed(range(layers))],
        }
    )


def test_a_plan_fits_its_budget_and_is_proven():
    trace = chain()
    assert trace.peak == 2000 and len(trace) == 40
    result = reprise.plan(trace, "0.3x", moves=2000)
    assert result.status in {"optimal", "feasible"} and result.peak <= 600
    assert result.overhead > 0
    proof = reprise.simulate(trace, result.plan)
    assert proof["valid"] and proof["peak_bytes"] == result.peak
    again = reprise.plan(trace, "0.3x", moves=2000)
    assert again.plan == result.plan
    assert "%" in str(result)


def test_a_budget_that_nothing_fits_is_no_exception():
    result = reprise.plan(chain(), 50, moves=100)
    assert result.status == "infeasible" and result.plan is None
    assert result.smallest_feasible >= 200


def test_every_planner_can_be_asked():
    assert {"best", "segments", "every", "revolve"} <= set(reprise.planners())
    assert reprise.plan(chain(), 2000, planner="segments", count=4).plan
    assert reprise.plan(chain(), 2000, planner="revolve", count=5).plan
    with pytest.raises(ValueError, match="planner"):
        reprise.plan(chain(), 2000, planner="nobody")


def test_a_trace_goes_through_files_and_dicts(tmp_path):
    trace = chain()
    trace.write(tmp_path / "trace.json")
    assert reprise.Trace.read(tmp_path / "trace.json") == trace
    assert reprise.Trace.from_dict(trace.to_dict()) == trace
    plan = reprise.plan(trace, 1000, moves=100).plan
    plan.write(tmp_path / "plan.json")
    assert reprise.Plan.read(tmp_path / "plan.json") == plan
    assert reprise.Plan.from_dict(plan.to_dict()) == plan
    with pytest.raises(ValueError, match="operators"):
        reprise.Trace.from_dict({"operators": [{"inputs": [7]}], "values": [], "moments": []})


def test_a_trace_of_a_graph_of_networkx():
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    for i in range(10):
        graph.add_node(f"layer {i}", bytes=100, cost=2.0)
    networkx.add_path(graph, [f"layer {i}" for i in range(10)])
    trace = reprise.Trace.from_networkx(graph)
    assert trace.peak == 1000 and trace.cost == 40
    assert reprise.plan(trace, 500, moves=500).plan
    back = trace.to_networkx()
    assert back.nodes[3] == {"name": "layer 3", "cost": 2.0, "bytes": 100}
    assert sorted(back.edges) == [(i, i + 1) for i in range(9)]
    assert reprise.Trace.from_networkx(back).peak == trace.peak


def test_a_graph_of_networkx_has_what_operators_make_and_read():
    pytest.importorskip("networkx")
    inputs, outputs = [[0], [1, 2]], [[1, 2], [3]]
    graph = reprise.Trace.from_dict(
        {
            "operators": [{"name": f"op {i}", "inputs": inputs[i], "outputs": outputs[i], "cost": 3 + i} for i in range(2)],
            "values": [{"bytes": 8}, {"bytes": 10, "maker": 0}, {"bytes": 20, "maker": 0}, {"bytes": 5, "maker": 1}],
            "moments": [{"runs": 0}, {"runs": 1}],
        }
    ).to_networkx()
    assert dict(graph.nodes(data=True)) == {0: {"name": "op 0", "cost": 3, "bytes": 30}, 1: {"name": "op 1", "cost": 4, "bytes": 5}}
    assert list(graph.edges) == [(0, 1)]


def test_a_curve_falls_with_the_budget():
    curve = reprise.curve(chain(), points=4, seconds=2)
    budgets, overheads = zip(*curve.points)
    assert list(budgets) == sorted(budgets) and list(overheads) == sorted(overheads, reverse=True)
    assert overheads[-1] == 0


def tangle(operators=300):
    """Operators of different sizes and costs that read results of many before them: nothing is proven soon."""
    random = Random(1)
    reads = [sorted(random.sample(range(i), min(i, 3))) for i in range(operators)]
    return reprise.Trace.from_dict(
        {
            "operators": [{"inputs": reads[i], "outputs": [i], "cost": random.randint(1, 9)} for i in range(operators)],
            "values": [{"bytes": random.randint(50, 150), "maker": i} for i in range(operators)],
            "moments": [{"runs": i} for i in range(operators)]
            + [{"needs": sorted({i, *reads[i]}), "cost": 1} for i in reversed(range(operators))],
        }
    )


def test_a_fit_finds_the_largest_size_for_a_budget():
    fit = reprise.fit({2: chain(bytes=200), 4: chain(bytes=400)}, 5000, at_most=12, seconds=1)
    assert fit.largest == 12 and fit.points[-1][0] == 12  # a chain of 20 values can do with a few of them
    assert fit.cheapest == max(fit.points, key=lambda point: -point[1])[0]
    assert fit.to_dict()["recorded"] == [2, 4] and fit.to_dict()["reached_the_end"]
    assert "per sample" in str(fit) and fit.svg().startswith("<svg") and "12" in repr(fit)
    some = reprise.fit({2: chain(bytes=200), 4: chain(bytes=400)}, "1000", wanted=[3, 1000], seconds=1)
    assert some.largest == 3 and [point["status"] == "infeasible" for point in some.to_dict()["points"]] == [False, True]
    assert reprise.fit({2: chain(bytes=200), 4: chain(bytes=400)}, 10, seconds=1).largest is None


def test_a_fit_of_traces_that_differ_names_the_first_operator():
    with pytest.raises(ValueError, match="at size 2 it is event 'backward 19', at size 4 operator 'layer 20'"):
        reprise.fit({2: chain(20), 4: chain(21)}, 1000)
    with pytest.raises(ValueError, match="there are traces of 1 sizes"):
        reprise.fit({2: chain()}, 1000)
    with pytest.raises(ValueError, match="a size is 0"):
        reprise.fit({0: chain(), 2: chain()}, 1000)
    with pytest.raises(TypeError, match="must be a dict"):
        reprise.fit([chain()], 1000)


def test_planning_can_be_interrupted():
    timer = threading.Timer(1, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        reprise.plan(tangle(), "0.5x", seconds=600)
    timer.join()

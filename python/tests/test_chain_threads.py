"""Exceptions, interrupts and threads while a chain runs or plans."""
import contextlib
import signal
import threading
import traceback

import numpy as np
import pytest
from beside import beside
from chains import LAYERS, adjoint, plain, run, same, start, step

import reprise
from reprise import schedule


def test_an_exception_of_a_closure_comes_through_and_the_chain_goes_on():
    class Mine(Exception):
        pass

    broken = [5]

    def fragile(k, x):
        if k in broken:
            raise Mine("at five", k)
        return step(k, x)

    chain = reprise.Chain(LAYERS, fragile, adjoint, schedule=schedule.slots(3))
    with pytest.raises(Mine) as caught:
        chain.forward(start())
    assert caught.value.args == ("at five", 5)
    assert "fragile" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert chain.statistics()["stored"] == 0
    broken.clear()
    chain.forward(start())
    broken.append(5)
    with pytest.raises(Mine):
        chain.backward(np.ones(64))
    with pytest.raises(reprise.ChainError, match="forward comes first"):
        chain.backward(np.ones(64))
    broken.clear()
    assert same(run(chain)[1], plain(start(), np.ones(64))[1])


def test_an_observer_is_told_and_can_end_a_pass():
    told = []
    chain = reprise.Chain(4, step, adjoint, schedule=schedule.slots(1), observer=told.append)
    run(chain)
    assert [one.phase for one in told].count("backward") == 4
    assert [one.phase for one in told].count("replay") == chain.statistics()["replays"] > 0
    assert told[0] == reprise.Progress("forward", 0, 0, 0, 2 * 64 * 8, 0.0)

    def stop(progress):
        raise StopIteration(progress.position)

    chain.observer = stop
    with pytest.raises(StopIteration, match="0"):
        chain.forward(start())


def test_random_numbers_in_forward_are_an_error():
    random = np.random.default_rng()
    chain = reprise.Chain(LAYERS, lambda k, x: x + random.standard_normal(64), adjoint, schedule=schedule.slots(2))
    assert chain.verify == "first_time"
    with pytest.raises(reprise.ChainError, match="made another state"):
        run(chain)
    chain.verify = "never"
    run(chain)


@pytest.mark.parametrize("builtin", [False, True])
def test_a_pass_can_be_interrupted(builtin):
    if builtin:
        operations = iter([np.negative] * 3 + [signal.raise_signal])
        forward = lambda k, x: next(operations)(signal.SIGINT if k == 3 else x)  # noqa: E731
    else:
        forward = lambda k, x: signal.raise_signal(signal.SIGINT) or x  # noqa: E731
    chain = reprise.Chain(10, forward, adjoint)
    with pytest.raises(KeyboardInterrupt):
        chain.forward(start())
    assert chain.statistics()["stored"] == 0


def difficult_chain(seconds, layers=60):
    """A chain with sizes for which no plan is soon known to be the best one."""
    random = np.random.default_rng(1)
    chain = reprise.Chain(layers, lambda k, x: np.zeros(1), lambda k, x, gradient: gradient)
    chain.sizes = {
        "input": 100,
        "gradient": 8,
        "layers": [
            {"state": int(random.integers(50, 150)), "forward_cost": float(random.integers(1, 9)), "gradient": 8}
            for _ in range(layers)
        ],
    }
    chain.schedule = schedule.budget(1500, seconds=seconds)
    return chain


def test_planning_can_be_interrupted():
    chain = difficult_chain(seconds=600, layers=400)
    timer = threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        chain.forward(np.zeros(1))
    timer.join()


def test_other_threads_run_while_a_plan_is_made():
    chain = difficult_chain(seconds=60, layers=400)
    layers, seen, over = [], [], threading.Event()
    chain.observer = lambda progress: layers.append(progress.layer) if progress.phase == "forward" else None

    def end_planning():
        seen.append(len(layers))
        while not over.wait(0.01):
            chain.cancel_planning()

    with beside(end_planning):
        with contextlib.suppress(reprise.ChainError):  # cancelled before there was a plan
            chain.forward(np.zeros(1))
        over.set()
    assert seen == [0]


def test_planning_goes_on_in_the_background():
    chain = difficult_chain(seconds=0.5)
    chain.plan_in_background()
    chain.forward(np.zeros(1))
    chain.backward(np.zeros(1))
    first = reprise.simulate(chain.trace(), chain.plan())["cost"]
    chain.wait_for_plan()
    chain.forward(np.zeros(1))
    assert reprise.simulate(chain.trace(), chain.plan())["cost"] <= first

    chain = difficult_chain(seconds=600)
    chain.plan_in_background()
    chain.forward(np.zeros(1))
    timer = threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        while True:  # also on a machine where the plan is there before the signal
            chain.wait_for_plan()
    timer.join()
    chain = difficult_chain(seconds=600)
    chain.plan_in_background()
    chain.forward(np.zeros(1))  # and freed while its plan is being made


def test_a_chain_that_runs_is_not_used_by_closures_and_other_threads():
    chain = reprise.Chain(4, lambda k, x: chain.forward(x), adjoint)
    with pytest.raises(reprise.ChainError, match="is running"):
        chain.forward(start())
    inside = reprise.Chain(2, step, adjoint)
    outside = reprise.Chain(3, lambda k, x: inside.forward(x), adjoint)
    outside.forward(start())
    seen = []

    def elsewhere(k, x):
        thread = threading.Thread(target=lambda: seen.append(pytest.raises(reprise.ChainError, chain.clear)))
        thread.start()
        thread.join()
        seen.append(chain.statistics()["forward_calls"])
        return x + 1

    chain = reprise.Chain(2, elsewhere)
    chain.forward(start())
    assert [one for one in seen if isinstance(one, int)] == [1, 2] and len(seen) == 4


def test_chains_run_in_several_threads():
    results = {}

    def work(number):
        chain = reprise.Chain(LAYERS, step, adjoint, schedule=schedule.slots(number))
        results[number] = [run(chain)[1] for _ in range(5)]

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = plain(start(), np.ones(64))[1]
    assert len(results) == 4 and all(same(one, expected) for many in results.values() for one in many)

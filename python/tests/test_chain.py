"""Chains of closures on arrays of numpy: every schedule against plain loops, bit for bit."""
import os

import numpy as np
import pytest
from chains import LAYERS, SCHEDULES, adjoint, plain, run, same, start, step

import reprise
from reprise import schedule


@pytest.mark.parametrize("codec", [None, "exact", "zstd"])
@pytest.mark.parametrize("kind", ["returns", "in_place", "into"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_gradient_has_the_bits_of_a_plain_loop(name, kind, codec, tmp_path):
    def in_place(k, x):
        x += 0.1 * np.sin((k + 1) * x)

    def into(k, before, after):
        after[:] = step(k, before)

    forward = {"returns": step, "in_place": in_place, "into": into}[kind]
    budget = schedule.budget(64 * 8 * 12, seconds=1) if name == "budget" else SCHEDULES[name]  # codecs need room, too
    chain = reprise.Chain(LAYERS, forward, adjoint, kind=kind, schedule=budget, codec=codec, disk=tmp_path)
    x = start()
    if name == "budget":
        chain.measure(x)
    for _ in range(2):
        y, gradient = run(chain, x)
        expected_y, expected_gradient = plain(start(), np.ones(64))
        assert same(y, expected_y) and same(gradient, expected_gradient)
        assert same(x, start())
    numbers = chain.statistics()
    assert numbers["forward_calls"] == LAYERS + numbers["replays"] and numbers["backward_calls"] == LAYERS
    assert numbers["stored"] == 0 and numbers["remembered"] == 0 and numbers["passes"] == 2
    assert not os.listdir(tmp_path) or chain.disk == str(tmp_path)


@pytest.mark.parametrize("layers, slots", [(1, 1), (7, 1), (10, 3), (24, 4), (100, 5), (365, 8)])
def test_slots_replay_as_often_as_the_closed_form_of_revolve_says(layers, slots):
    calls = []
    chain = reprise.Chain(
        layers, lambda k, x: calls.append(k) or x + k, lambda k, x, gradient: gradient, schedule=schedule.slots(slots)
    )
    chain.forward(0.0)
    chain.backward(1.0)
    numbers = chain.statistics()
    # The closed form counts one step for each layer more: the one whose tape backward uses, which is a part of the
    # caller's backward here. In turn the first pass over the last layer makes the result.
    assert numbers["forward_calls"] == len(calls) == schedule.revolve_steps(layers, slots) - (layers - 1)
    assert numbers["peak_remembered"] <= slots + 2


def test_the_closed_form_counts_what_checkpoint_schedules_and_pyrevolve_count():
    # Of checkpoint_schedules 1.0.4, Revolve(layers, slots), and pyrevolve 2.2.8.
    counted = {(10, 1): 55, (10, 2): 30, (10, 3): 25, (10, 4): 24, (24, 4): 75, (100, 5): 416}
    assert {key: schedule.revolve_steps(*key) for key in counted} == counted


@pytest.mark.parametrize("cost, counted", [(0, 68), (2, 74)])
def test_memory_and_disk_take_the_steps_of_checkpoint_schedules(cost, counted, tmp_path):
    # MultistageCheckpointSchedule(24, 2, 3), for which a disk costs nothing, and HRevolve(24, 2, 3), where it costs 2.
    one = schedule.memory_and_disk(2, 3, write_cost=cost, read_cost=cost)
    chain = reprise.Chain(24, step, adjoint, schedule=one, disk=tmp_path)
    run(chain)
    assert chain.statistics()["forward_calls"] + 23 == counted


@pytest.mark.parametrize("states", [5, 7, 10, 14])
def test_a_budget_is_kept(states):
    budget = states * 64 * 8
    chain = reprise.Chain(LAYERS, step, adjoint, schedule=schedule.budget(budget, seconds=1))
    chain.measure(start())
    y, gradient = run(chain)
    assert same(gradient, plain(start(), np.ones(64))[1])
    assert 0 < chain.statistics()["peak_stored"] <= budget
    assert chain.plan().budget <= budget
    assert reprise.simulate(chain.trace(), chain.plan())["valid"]


def test_a_budget_that_is_too_small_says_what_would_do():
    chain = reprise.Chain(LAYERS, step, adjoint, schedule=schedule.budget(600, seconds=1))
    with pytest.raises(reprise.ChainError, match="measure"):
        chain.forward(start())
    chain.measure(start())
    with pytest.raises((ValueError, reprise.ChainError), match="600"):
        chain.forward(start())


def test_memory_and_disk_have_the_states_that_they_should(tmp_path):
    chain = reprise.Chain(LAYERS, step, adjoint, schedule=schedule.memory_and_disk(1, 4), disk=tmp_path)
    chain.forward(start())
    assert chain.store_statistics("disk")["stored_ever"] >= 3  # and the input
    assert chain.statistics()["remembered"] <= 1 + 4 + 1
    chain.backward(np.ones(64))
    assert chain.statistics()["disk"] == 0
    with pytest.raises(reprise.ChainError, match="disk"):
        reprise.Chain(4, step, adjoint, schedule=schedule.memory_and_disk(1, 4)).forward(start())


def test_a_number_of_layers_that_is_not_known():
    chain = reprise.Chain(None, step, adjoint, schedule=schedule.online(3))
    y = chain.forward_until(start(), lambda position, state: position == 16)
    expected_y, expected = plain(start(), np.ones(64), range(17))
    assert same(y, expected_y) and same(chain.backward(np.ones(64)), expected)
    assert chain.statistics()["peak_remembered"] <= 5
    with pytest.raises(reprise.ChainError, match="known"):
        chain.forward(start())


def test_layers_have_the_numbers_of_a_list():
    order = [3, 1, 1, 7]
    chain = reprise.Chain(order, step, adjoint, schedule=schedule.slots(1))
    y, gradient = run(chain)
    expected_y, expected = plain(start(), np.ones(64), order)
    assert same(y, expected_y) and same(gradient, expected)
    y = chain.forward(start(), 2)
    assert same(y, step(7, step(1, start())))


def test_tapes_are_handed_to_backward():
    def forward(k, x, wanted):
        return step(k, x), np.cos((k + 1) * x) if wanted else None

    def backward(k, x, tape, gradient):
        return gradient * (1 + 0.1 * (k + 1) * tape)

    for one in (schedule.slots(3), schedule.everything(), schedule.every(5)):
        chain = reprise.Chain(LAYERS, forward, backward, tapes=True, schedule=one)
        assert same(run(chain)[1], plain(start(), np.ones(64))[1])
    with pytest.raises(TypeError, match=r"\(state, tape\)"):
        reprise.Chain(2, lambda k, x, wanted: x, backward, tapes=True).forward(start())


def test_the_loop_can_be_the_callers():
    for one in ("every", "slots", "selective", "everything"):
        chain = reprise.Chain(LAYERS, step, adjoint, schedule=SCHEDULES[one])
        loop = reprise.ChainLoop(chain)
        x, gradient = start(), np.ones(64)
        for _ in range(LAYERS):
            x = loop.forward(x, cost=1.5)
        for _ in range(LAYERS):
            gradient = loop.backward(gradient)
        expected_y, expected = plain(start(), np.ones(64))
        assert same(x, expected_y) and same(gradient, expected)
    with pytest.raises(reprise.ChainError, match="forward comes first"):
        loop.backward(gradient)

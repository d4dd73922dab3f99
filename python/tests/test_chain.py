"""Chains of closures on arrays of numpy: every schedule against plain loops, bit for bit."""
import gc
import os
import signal
import sys
import threading
import traceback
import weakref

import numpy as np
import pytest

import reprise
from reprise import schedule

LAYERS = 24


def step(k, x):
    return x + 0.1 * np.sin((k + 1) * x)


def adjoint(k, x, gradient):
    return gradient * (1 + 0.1 * (k + 1) * np.cos((k + 1) * x))


def start(size=64):
    return np.random.default_rng(0).standard_normal(size)


def plain(x, gradient, layers=range(LAYERS)):
    """The result and the gradient of a loop that keeps everything."""
    states = [x]
    for k in layers:
        states.append(step(k, states[-1]))
    for k, state in zip(reversed(list(layers)), reversed(states[:-1])):
        gradient = adjoint(k, state, gradient)
    return states[-1], gradient


def same(a, b):
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def run(chain, x=None):
    x = start() if x is None else x
    y = chain.forward(x)
    return y, chain.backward(np.ones_like(x))


SCHEDULES = {
    "everything": schedule.everything(),
    "every": schedule.every(5),
    "every, at most": schedule.every(1, maximum=3),
    "slots": schedule.slots(3),
    "one slot": schedule.slots(1),
    "online": schedule.online(4),
    "selective": schedule.selective(4),
    "costly_layers": schedule.costly_layers(1),
    "after": schedule.after([1, 20, 7]),
    "memory_and_disk": schedule.memory_and_disk(2, 3, write_cost=2, read_cost=2),
    "budget": schedule.budget(64 * 8 * 8, seconds=1),
}


# ---- every schedule


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


# ---- states of every form


def swing(k, state):
    return {"u": state["u"] + 0.1 * state["v"], "v": state["v"] - 0.1 * np.sin(state["u"]), "t": state["t"] + 0.1}


def swing_adjoint(k, state, gradient):
    return {"u": gradient["u"] - 0.1 * np.cos(state["u"]) * gradient["v"], "v": gradient["v"] + 0.1 * gradient["u"]}


def fields():
    return {"u": start(), "v": start()[::-1].copy(), "t": 0.25}


@pytest.mark.parametrize("codec", [None, "zstd"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_state_of_several_fields(name, codec, tmp_path):
    state, states = fields(), []
    for k in range(LAYERS):
        states.append(state)
        state = swing(k, state)
    expected = {"u": np.ones(64), "v": np.zeros(64)}
    for k in reversed(range(LAYERS)):
        expected = swing_adjoint(k, states[k], expected)

    one = schedule.budget(64 * 8 * 30, seconds=1) if name == "budget" else SCHEDULES[name]
    chain = reprise.Chain(LAYERS, swing, swing_adjoint, schedule=one, codec=codec, disk=tmp_path)
    if name == "budget":
        chain.measure(fields())
    y = chain.forward(fields())
    gradient = chain.backward({"u": np.ones(64), "v": np.zeros(64)})
    assert y["t"] == state["t"] and same(y["u"], state["u"]) and same(y["v"], state["v"])
    assert same(gradient["u"], expected["u"]) and same(gradient["v"], expected["v"])
    if name == "budget":
        assert chain.statistics()["peak_stored"] <= 64 * 8 * 30


@pytest.mark.parametrize(
    "state",
    [
        np.float32(1.5),
        -0.0,
        2**70,
        1 - 2j,
        None,
        "text",
        np.zeros((0, 3)),
        np.array(3.0),
        np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
        np.asfortranarray(np.arange(6.0, dtype=np.float16).reshape(2, 3)),
        np.array([True, False]),
        np.arange(10)[::3],
        (np.arange(3), [np.float64("nan"), {"a": np.ones(2, np.complex64), 7: ()}]),
    ],
    ids=repr,
)
def test_a_state_comes_back_from_disk_as_it_was(state, tmp_path):
    chain = reprise.Chain(4, lambda k, x: x, schedule=schedule.everything(), disk=tmp_path)
    chain.by_hand(on_disk=True)
    chain.save(1, state)
    back = chain.state(1)

    def equal(a, b):
        assert type(a) is type(b)
        if isinstance(a, (tuple, list)):
            assert len(a) == len(b)
            return all(equal(one, other) for one, other in zip(a, b))
        if isinstance(a, dict):
            assert list(a) == list(b)
            return all(equal(a[key], b[key]) for key in a)
        if isinstance(a, np.ndarray):
            contiguous = a.flags.c_contiguous or a.flags.f_contiguous or a.ndim == 3
            return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() and (
                a.strides == b.strides or not contiguous or a.size == 0
            )
        return repr(a) == repr(b)

    assert equal(state, back)


def test_a_codec_rounds_each_field_for_itself():
    large, small = np.full(10, 1e4, np.float32), np.linspace(0.01, 0.02, 10, dtype=np.float32)
    chain = reprise.Chain(2, lambda k, x: x, codec="int8")
    chain.save(0, (large, small, 1e-9))
    back = chain.state(0)
    assert np.array_equal(back[0], large) and back[2] == 1e-9
    assert not np.array_equal(back[1], small) and np.abs(back[1] - small).max() <= 0.02 / 253
    assert chain.store_statistics("packed")["kept_exactly"] == 0
    assert chain.statistics()["stored"] < 2 * 64 * 4  # two blocks of a byte each, and the description


def test_a_lossy_codec_changes_backward_and_not_the_result():
    chain = reprise.Chain(6, step, adjoint, codec="half", schedule=schedule.every(2))
    y, gradient = run(chain)
    expected_y, expected = plain(start(), np.ones(64), range(6))
    assert same(y, expected_y) and chain.codec == "half"
    assert not same(gradient, expected) and np.allclose(gradient, expected, rtol=0.02)


# ---- memory


def test_states_are_held_and_handed_on_without_a_copy():
    made, seen = [], []

    def forward(k, x):
        seen.append(x)
        made.append(step(k, x))
        return made[-1]

    x = start()
    chain = reprise.Chain(3, forward, lambda k, state, gradient: seen.append(state) or gradient, schedule=schedule.everything())
    y = chain.forward(x)
    assert y is made[-1]
    assert np.shares_memory(seen[0], x) and np.shares_memory(seen[1], made[0])
    chain.backward(np.ones(64))
    assert np.shares_memory(seen[-1], x) and np.shares_memory(seen[-2], made[0])
    assert not seen[0].flags.writeable and x.flags.writeable and made[0].flags.writeable
    gradient = np.ones(64)
    assert chain.forward(x) is made[-1] and chain.backward(gradient, copy=False) is gradient
    assert chain.forward(x) is made[-1] and not np.shares_memory(chain.backward(gradient), gradient)


def test_closures_that_write_get_the_same_memory_again():
    addresses = set()

    def into(k, before, after):
        addresses.add(after.ctypes.data)
        after[:] = step(k, before)

    chain = reprise.Chain(LAYERS, into, adjoint, kind="into", schedule=schedule.slots(3))
    x = start(4096)
    for _ in range(2):
        y = chain.forward(x)
        chain.backward(np.ones(4096))
        chain.give_back(y)
    assert chain.statistics()["spare"] > 0
    count = len(addresses)
    chain.forward(x)
    chain.backward(np.ones(4096))
    assert len(addresses) == count
    assert x.ctypes.data not in addresses


def test_what_was_forgotten_is_freed():
    alive = []

    class Watched:
        def __call__(self, k, x):
            y = step(k, x)
            alive.append(weakref.ref(y))
            return y

    chain = reprise.Chain(LAYERS, Watched(), adjoint, schedule=schedule.slots(2))
    y = chain.forward(start())
    assert sum(one() is not None for one in alive) <= 3
    chain.backward(np.ones(64))
    assert sum(one() is not None for one in alive) == 1 and y is not None  # the result


def test_nothing_is_held_after_a_pass_however_it_ends():
    def fails(k, x, gradient):
        if k == 3:
            raise ArithmeticError
        return adjoint(k, x, gradient)

    x, gradient = start(), np.ones(64)
    for backward in (adjoint, fails):
        chain = reprise.Chain(LAYERS, step, backward, schedule=schedule.slots(3))
        before = sys.getrefcount(x), sys.getrefcount(gradient), sys.getrefcount(step), sys.getrefcount(backward)
        for _ in range(3):
            chain.forward(x)
            try:
                chain.backward(gradient)
            except ArithmeticError:
                pass
        assert (sys.getrefcount(x), sys.getrefcount(gradient), sys.getrefcount(step), sys.getrefcount(backward)) == before
    with pytest.raises(TypeError):
        chain.forward((x, object()))
    assert sys.getrefcount(x) == before[0]


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


def test_an_object_whose_methods_are_the_closures_is_freed():
    class Solver:
        def __init__(self):
            self.chain = reprise.Chain(4, self.forward, self.backward, observer=self.observe)
            self.store = reprise.Store(remember=self.rule)

        def forward(self, k, x):
            return x + 1

        def backward(self, k, x, gradient):
            return gradient

        def observe(self, progress):
            pass

        def rule(self, offer):
            return True

    solver = Solver()
    solver.chain.forward(np.zeros(3))
    solver.store.put(1, np.zeros(3))
    gone = weakref.ref(solver)
    del solver
    gc.collect()
    assert gone() is None


def test_a_buffer_that_is_used_again_is_an_error_and_no_wrong_gradient():
    buffer = start()

    def careless(k, x):
        buffer[:] = step(k, x)
        return buffer

    chain = reprise.Chain(4, careless, adjoint, schedule=schedule.everything())
    with pytest.raises(reprise.ChainError, match="layer 1 .*in_place"):
        chain.forward(start())
    two = [start(), start()]  # one after the other: right if nothing but the last state is held

    def careful(k, x):
        two[k % 2][:] = step(k, x)
        return two[k % 2]

    y = reprise.Chain(LAYERS, careful, schedule=schedule.slots(1)).forward(start())
    assert same(y, plain(start(), np.ones(64))[0])
    with pytest.raises(ValueError, match="read-only"):
        reprise.Chain(4, lambda k, x: np.add(x, 1, out=x), adjoint).forward(start())


def test_an_array_that_stays_the_same_is_handed_on():
    speed = start()
    chain = reprise.Chain(
        LAYERS,
        lambda k, state: {"u": state["u"] + state["speed"], "speed": state["speed"]},
        lambda k, state, gradient: gradient,
        schedule=schedule.everything(),
    )
    end = chain.forward({"u": np.zeros(64), "speed": speed})
    assert np.shares_memory(end["speed"], speed)
    chain.backward(np.ones(64))


# ---- Python: exceptions, interrupts, threads


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
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        chain.forward(np.zeros(1))
    timer.join()


def test_other_threads_run_while_a_plan_is_made():
    chain = difficult_chain(seconds=1, layers=400)
    planning, counted = threading.Event(), []
    chain.observer = lambda progress: planning.set() if progress.phase == "planning" else None

    def count():
        planning.wait()
        while chain_thread.is_alive() and not over.is_set():
            counted.append(len(counted))

    over = threading.Event()
    chain_thread = threading.Thread(target=lambda: (chain.forward(np.zeros(1)), over.set()))
    counter = threading.Thread(target=count)
    counter.start()
    chain_thread.start()
    chain_thread.join()
    counter.join()
    assert len(counted) > 10_000


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
    timer.start()
    with pytest.raises(KeyboardInterrupt):
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


# ---- states by hand


def test_states_are_saved_by_hand():
    chain = reprise.Chain(LAYERS, step, adjoint, schedule=schedule.slots(2))
    chain.by_hand(maximum=3)
    states = [start()]
    for k in range(LAYERS):
        states.append(step(k, states[-1]))
    chain.save_input(states[0])
    chain.save(9, states[10])
    chain.save(9, states[10])
    chain.save(15, states[16])
    with pytest.raises(reprise.ChainError, match="maximum"):
        chain.save(3, states[4])
    assert chain.remembers(9) and not chain.remembers(8)
    assert same(chain.state(9), states[10]) and not np.shares_memory(chain.state(9), states[10])
    assert same(chain.recompute(12), states[13])
    assert same(chain.backward(np.ones(64)), plain(start(), np.ones(64))[1])
    with pytest.raises(reprise.ChainError, match="not remembered"):
        chain.state(3)


def test_schedules_answer_before_anything_has_run():
    assert schedule.every(3).remembers_before(6, 3) and not schedule.every(3).remembers(6, 0)
    assert [k for k in range(12) if schedule.after([0, 4, 8]).remembers(12, k)] == [0, 4, 8]
    chain = reprise.Chain(12, step, adjoint, schedule=schedule.every(4))
    chain.forward(start())
    assert [chain.remembers(k) for k in range(12)] == [chain.schedule.remembers(12, k) for k in range(12)]
    sizes = {"layers": [{"state": 8, "gradient": 8}] * 6, "input": 8, "gradient": 8}
    assert schedule.budget(1000, seconds=1).remembers(sizes, 3)
    assert repr(chain.schedule) == "reprise.schedule.every(4, 64)"
    chain.enabled = False
    run(chain)
    assert chain.statistics()["replays"] == 0


# ---- passes that outlive the process



def killed_or_done(function):
    """Runs the function in a process of its own. True if it came to its end, False if it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return not os.WIFSIGNALED(status)


@pytest.mark.parametrize("form", ["array", "fields"])
def test_a_pass_goes_on_after_every_kill_with_the_same_bits(form, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()

    def kept_chain(dies_at):
        calls = []

        def alive():
            calls.append(None)
            if len(calls) == dies_at:
                while len(list((folder / "reprise-kept").glob("*"))) < 3:
                    pass  # another thread writes what is kept
                os.kill(os.getpid(), signal.SIGKILL)

        def forward(k, x):
            alive()
            return step(k, x) if form == "array" else {"u": step(k, x["u"]), "t": x["t"] + 1}

        def backward(k, x, gradient):
            alive()
            return adjoint(k, x if form == "array" else x["u"], gradient)

        chain = reprise.Chain(LAYERS, forward, backward, schedule=schedule.memory_and_disk(2, 3), codec="zstd")
        chain.use_disk(folder, keep=True)
        return chain, chain.resume(fingerprint=7)

    def program():
        chain, found = kept_chain(dies_at=20 + 5 * kills)
        with open(tmp_path / "found", "a") as file:
            print(found.forward, file=file)
        y = chain.forward(start() if form == "array" else {"u": start(), "t": 0})
        np.save(tmp_path / "y", y if form == "array" else y["u"])
        np.save(tmp_path / "gradient", chain.backward(np.ones(64)))

    kills = 0
    while not killed_or_done(program):
        kills += 1
        assert kills < 30
    assert kills >= 2 and max(map(int, (tmp_path / "found").read_text().split())) > 0
    expected_y, expected = plain(start(), np.ones(64))
    assert same(np.load(tmp_path / "y.npy"), expected_y) and same(np.load(tmp_path / "gradient.npy"), expected)

    # It is over now, and stays until the next one begins. Another chain refuses it.
    chain, found = kept_chain(dies_at=None)
    assert found == reprise.Resumed(True, LAYERS, 0) and found
    other = reprise.Chain(LAYERS, step, adjoint, codec="zstd")
    other.use_disk(folder, keep=True)
    with pytest.raises(reprise.ChainError, match="fingerprint"):
        other.resume()
    with pytest.raises(reprise.ChainError, match="resume"):
        other.forward(start())
    other.clear()
    assert not other.resume()


# ---- wrong input


def chain_with(**options):
    return reprise.Chain(4, step, adjoint, **options)


@pytest.mark.parametrize(
    "error, words, wrong",
    [
        (TypeError, "forward is 3", lambda: reprise.Chain(4, 3)),
        (TypeError, "backward is 3", lambda: reprise.Chain(4, step, 3)),
        (TypeError, "whole number", lambda: reprise.Chain(4.5, step)),
        (TypeError, "whole number", lambda: reprise.Chain(True, step)),
        (TypeError, "whole number", lambda: reprise.Chain("four", step)),
        (TypeError, "whole number", lambda: reprise.Chain([1, "two"], step)),
        (ValueError, "negative", lambda: reprise.Chain(-1, step)),
        (ValueError, "2.31", lambda: reprise.Chain(2**40, step)),
        (ValueError, "kind", lambda: chain_with(kind="other")),
        (TypeError, "schedule", lambda: chain_with(schedule="every(4)")),
        (ValueError, "codec", lambda: chain_with(codec="nobody")),
        (TypeError, "codec", lambda: chain_with(codec=3)),
        (ValueError, "verify", lambda: chain_with(verify="sometimes")),
        (TypeError, "observer", lambda: chain_with(observer=3)),
        (TypeError, "schedule", lambda: setattr(chain_with(), "schedule", None)),
        (ValueError, "slots", lambda: schedule.slots(0)),
        (ValueError, "n", lambda: schedule.every(0)),
        (TypeError, "whole number", lambda: schedule.slots(1.5)),
        (TypeError, "budget", lambda: schedule.budget(None)),
        (ValueError, "budget", lambda: schedule.budget(-5)),
        (ValueError, "seconds", lambda: schedule.budget(5, seconds=-1)),
        (ValueError, "-1", lambda: schedule.after([-1])),
        (ValueError, "layer", lambda: schedule.every(3).remembers(6, 6)),
        (ValueError, "sizes", lambda: schedule.budget(5).remembers(6, 2)),
        (TypeError, "nobody knows", lambda: setattr(chain_with(), "sizes", {"layers": [{"bytes": 3}] * 4})),
        (TypeError, "need 'layers'", lambda: setattr(chain_with(), "sizes", {})),
        (TypeError, "no whole number", lambda: setattr(chain_with(), "sizes", {"layers": [{"state": "3"}] * 4})),
        (ValueError, "4", lambda: setattr(chain_with(), "sizes", {"layers": [{"state": 3}] * 5})),
        (TypeError, "not 'object'", lambda: chain_with().forward(object())),
        (TypeError, "not 'MaskedArray'.*asarray", lambda: chain_with().forward(np.ma.masked_array([1.0]))),
        (TypeError, "dtype object", lambda: chain_with().forward(np.array([None]))),
        (TypeError, "dtype >f8", lambda: chain_with().forward(np.zeros(3, ">f8"))),
        (TypeError, "key", lambda: chain_with().forward({(1, 2): np.zeros(3)})),
        (TypeError, "returned None", lambda: reprise.Chain(4, lambda k, x: None).forward(start())),
        (TypeError, "writes", lambda: reprise.Chain(4, lambda k, x: 3, kind="in_place").forward(start())),
        (TypeError, "positional argument", lambda: reprise.Chain(4, lambda x: x).forward(start())),
        (reprise.ChainError, "there is no layer 9", lambda: chain_with().remembers(9)),
        (reprise.ChainError, "layer 9", lambda: chain_with().forward(start(), 9)),
        (reprise.ChainError, "forward comes first", lambda: chain_with().backward(start())),
        (reprise.ChainError, "without a backward", lambda: reprise.Chain(4, step).backward(start())),
        (reprise.ChainError, "no plan", lambda: chain_with().plan()),
        (reprise.ChainError, "keep", lambda: chain_with().resume()),
        (ValueError, "fingerprint", lambda: chain_with().resume(-1)),
        (ValueError, "negative", lambda: chain_with().save(-1, start())),
        (reprise.ChainError, "number of layers", lambda: chain_with().forward_until(start(), lambda k, x: True)),
        (TypeError, "done", lambda: reprise.Chain(None, step).forward_until(start(), 3)),
        (ValueError, "place", lambda: chain_with().store_statistics("tape")),
        (TypeError, "Chain", lambda: reprise.ChainLoop(3)),
        (reprise.DiskError, "nowhere", lambda: chain_with(disk="/nowhere", schedule=schedule.memory_and_disk(0, 2)).forward(start())),
    ],
)
def test_what_is_wrong_is_an_exception_with_a_sentence(error, words, wrong):
    with pytest.raises(error, match=words):
        wrong()


def test_a_backward_that_returns_nothing_is_an_error():
    chain = reprise.Chain(4, step, lambda k, x, gradient: None)
    chain.forward(start())
    with pytest.raises(TypeError, match="backward of layer 3 returned None"):
        chain.backward(np.ones(64))


def test_a_list_that_has_itself_is_an_error():
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        chain_with().forward(endless)

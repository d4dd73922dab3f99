"""What a chain holds, copies and frees."""
import gc
import sys
import weakref

import numpy as np
import pytest
from chains import LAYERS, adjoint, plain, same, start, step

import reprise
from reprise import schedule


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


def test_what_was_evicted_is_freed():
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

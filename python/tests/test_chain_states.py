"""States of a chain: of every form, coded, on disk and saved by hand."""
import numpy as np
import pytest
from chains import LAYERS, SCHEDULES, adjoint, plain, run, same, start, step

import reprise
from reprise import schedule


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
    "numbers",
    [
        (0, 7, -1, 10**18, 1 - 2**63, 2**63 - 1),
        (0.0, 1.0, -1e-300, float("inf"), float("nan"), 0.1),
        (0j, -1e-300 + 1e300j),
        (True, False),
    ],
    ids=["int", "float", "complex", "bool"],
)
def test_numbers_of_one_type_are_of_one_size_on_disk(numbers, tmp_path):
    def disk_bytes(number):
        chain = reprise.Chain(4, lambda k, x: x, schedule=schedule.everything(), disk=tmp_path)
        chain.by_hand(on_disk=True)
        chain.save(1, {"u": np.zeros(3), "t": number})
        back = chain.state(1)["t"]
        assert type(back) is type(number) and repr(back) == repr(number)
        return chain.store_statistics("disk")["before_coding"]

    assert len({disk_bytes(number) for number in numbers}) == 1


def test_a_disk_that_is_large_enough_for_the_first_state_is_so_however_far_the_program_counts(tmp_path):
    def gradient(budget, step):
        chain = reprise.Chain(
            LAYERS,
            lambda k, x: {"u": x["u"].copy(), "t": x["t"] * step},
            lambda k, x, g: g,
            schedule=schedule.memory_and_disk(1, 8),
        )
        chain.use_disk(tmp_path, budget=budget)
        chain.forward({"u": np.zeros(8), "t": 1})
        return chain.backward(1.0)

    def is_enough(budget):
        try:
            return gradient(budget, 1) == 1.0
        except (ValueError, reprise.ChainError):
            return False

    smallest = next(budget for budget in range(0, 10_000, 16) if is_enough(budget))
    assert smallest > 0
    assert gradient(smallest, 4) == 1.0


@pytest.mark.parametrize(
    "state",
    [
        np.float32(1.5),
        -0.0,
        2**70,
        -(2**63),
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


# ---- by hand


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

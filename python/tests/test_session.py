"""What a session does beside being exact: budgets, errors, summaries, threads, and what goes wrong."""
import contextlib
import copy
import gc
import signal
import threading

import models
import numpy as np
import pytest
import torch
from trained import train

import reprise


def deep(width=256, layers=8, rows=512):
    """A model whose activations are most of what it needs."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh()) for _ in range(layers)))
    return model, torch.randn(rows, width)


def run(model, x):
    for parameter in model.parameters():
        parameter.grad = None
    model(x).pow(2).mean().backward()


# ---- budgets ---------------------------------------------------------------------------------------------------------


def test_a_budget_is_bytes_or_text():
    assert reprise.Session(1 << 30).budget == 1 << 30
    assert reprise.Session(np.int64(1 << 30)).budget == 1 << 30
    assert reprise.Session("2GiB").budget == 2 << 30
    assert reprise.Session("20 MB").budget == 20_000_000
    assert reprise.Session().budget is None
    session = reprise.Session("2GiB")
    session.budget = "1GiB"
    assert session.budget == 1 << 30
    session.budget = None
    assert session.budget is None


@pytest.mark.parametrize("named", ["cpu", torch.device("cpu")])
def test_a_device_is_named_and_has_a_budget(named):
    model, x = deep(rows=2048)
    run(model, x)
    expected = [p.grad.clone() for p in model.parameters()]
    measured = reprise.Session(device=named)
    with measured.step():
        run(model, x)
    budget = int(0.7 * measured.summary()["peak_last_step_bytes"])
    for session in reprise.Session(budget, device=named), reprise.Session(budgets={named: budget}):
        with session.step():
            run(model, x)
        assert all(torch.equal(p.grad, e) for p, e in zip(model.parameters(), expected, strict=True))
        (device,) = session.summary()["devices"]
        assert device["device"] == "cpu" and device["budget_bytes"] == budget >= device["peak_bytes"]
        assert session.budget == budget and session.budgets == {"cpu": budget}
        session.budgets = {"cpu": "1GiB"}
        assert session.budget == 1 << 30


def test_a_disk_below_the_memory_gives_the_same_bits(tmp_path):
    model, x = deep(rows=2048)
    run(model, x)
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    session = reprise.Session("0.6x", disk=tmp_path, disk_bytes="1GiB", planning_seconds=1)
    for _ in range(5):
        with session.step():
            run(model, x)
        assert all(torch.equal(p.grad, e) for p, e in zip(model.parameters(), expected, strict=True))
        session.wait_for_plan()
    summary = session.summary()
    assert summary["disk_failures"] == 0
    assert summary["peak_last_step_bytes"] <= session.budget
    assert "disk" in [tier["name"] for tier in session.trace().to_dict()["tiers"]]
    del session
    gc.collect()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("budget", ["much", "-3", "1.5.2GiB", "0.5xx", "", -1, 2**63])
def test_a_budget_that_makes_no_sense_is_a_value_error(budget):
    with pytest.raises(ValueError):
        reprise.Session(budget)


@pytest.mark.parametrize("budget", [1.5, True, b"2GiB", [1]])
def test_a_budget_of_another_type_is_a_type_error(budget):
    with pytest.raises(TypeError, match="a number of bytes, or text"):
        reprise.Session(budget)


def test_a_multiple_is_of_what_two_plain_steps_need():
    model, x = deep(rows=2048)
    session = reprise.Session("0.6x", planning_seconds=1)
    for _ in range(2):
        with session.step():
            run(model, x)
        plain = session.summary()["peak_last_step_bytes"]
    assert session.budget == int(0.6 * plain)
    for _ in range(2):
        with session.step():
            run(model, x)
        assert session.summary()["peak_last_step_bytes"] <= session.budget


def test_options_that_make_no_sense_are_value_errors_that_name_them():
    for options, what in [
        ({"verify": "sometimes"}, "verify is 'sometimes'"),
        ({"planning_share": -1}, "planning_share is -1"),
        ({"planning_share": float("nan")}, "planning_share is"),
        ({"planning_seconds": -1}, "planning_seconds is -1"),
        ({"planning_seconds": float("nan")}, "planning_seconds is"),
        ({"policy": {"aten::mm": "burn"}}, "policy has 'burn' for 'aten::mm'"),
        ({"policy": ["keep_everything"]}, "policy has 'keep_everything'"),
        ({"policy": {"aten::tahn": "keep"}}, "'aten::tahn': LibTorch has no operator of this name; near are aten::tan, aten::tanh"),
        ({"policy": {"aten::linear": "keep"}}, "'aten::linear': it is composed of other operators"),
    ]:
        with pytest.raises(ValueError, match=what):
            reprise.Session(**options)
    with pytest.raises(TypeError, match="a dict by names"):
        reprise.Session(policy=lambda op: "keep")


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_a_budget_error_in_forward_has_its_facts_and_leaves_everything_usable():
    model, x = deep()
    there = reprise.live_bytes()
    session = reprise.Session(there + 100_000)
    with pytest.raises(reprise.BudgetError) as caught:
        with session.step():
            run(model, x)
    error = caught.value
    assert isinstance(error, reprise.SessionError) and isinstance(error, RuntimeError)
    assert error.budget == there + 100_000
    assert error.live + error.requested > error.budget
    assert sum(held for _, held in error.pinned) == error.live
    del error, caught
    gc.collect()
    assert reprise.live_bytes() <= there + 100_000
    session.budget = None
    with session.step():
        run(model, x)


def test_a_budget_error_in_a_node_of_backward_has_its_type_and_facts():
    class Hungry(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            torch.empty(1 << 28)
            return gradient

    x = torch.randn(8, requires_grad=True)
    session = reprise.Session(reprise.live_bytes() + (1 << 20))
    with pytest.raises(reprise.BudgetError) as caught:
        with session.step():
            Hungry.apply(x).sum().backward()
    assert caught.value.requested > 1 << 28


def test_a_write_behind_the_back_of_torch_is_a_mismatch_error():
    x = torch.ones(4096, requires_grad=True)
    session = reprise.Session(evict_everything=True, verify="always")
    with pytest.raises(reprise.MismatchError):
        with session.step():
            y = x.exp()
            y.detach().numpy()[:] = 5
            y.sin().sum().backward()


def test_a_write_that_is_told_is_no_error():
    def gradient(session):
        x = torch.ones(4096, requires_grad=True)
        with session.step() if session else contextlib.nullcontext():
            y = x * 2
            y.detach().numpy()[:] = 5
            if session:
                session.touched(y)
            y.exp().sin().sum().backward()
        return x.grad

    assert torch.equal(gradient(reprise.Session(evict_everything=True, verify="always")), gradient(None))
    with pytest.raises(TypeError, match="must be a tensor"):
        reprise.Session().touched("y")


def test_errors_of_the_program_keep_their_types_and_the_next_step_works():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            raise KeyError("mine")

    model, x = deep(layers=2)
    session = reprise.Session(evict_everything=True)
    with pytest.raises(KeyError, match="mine"):
        with session.step():
            Fails.apply(model(x)).sum().backward()
    with pytest.raises(KeyboardInterrupt):
        with session.step():
            model(x)
            raise KeyboardInterrupt
    with session.step():
        run(model, x)
    assert session.summary()["steps"] == 3


# ---- steps -----------------------------------------------------------------------------------------------------------


def test_steps_of_one_thread_do_not_overlap():
    session, other = reprise.Session(name="first"), reprise.Session()
    with session.step():
        with pytest.raises(ValueError, match="open step already, of session 'first'"):
            with other.step():
                pass
    step = session.step()
    with step:
        pass
    with pytest.raises(ValueError, match="begun already"):
        with step:
            pass


def test_a_step_ends_on_the_thread_that_began_it():
    session = reprise.Session()
    step = session.step()
    step.__enter__()
    errors = []

    def end():
        try:
            step.__exit__(None, None, None)
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert errors and "thread that began it" in errors[0]
    step.__exit__(None, None, None)


def test_two_threads_train_in_sessions_of_their_own():
    def gradients(model, loss, session):
        result = []
        for step in range(3):
            model.zero_grad()
            with session.step() if session else contextlib.nullcontext():
                loss(model, step).backward()
            result.append([p.grad.clone() for p in model.parameters()])
        return result

    torch.manual_seed(7)
    made = [models.convolutions() for _ in range(2)]
    expected = [gradients(copy.deepcopy(model), loss, None) for model, loss in made]
    sessions = [reprise.Session(evict_everything=True) for _ in made]
    results = {}

    def work(number):
        results[number] = gradients(*made[number], sessions[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(2):
        assert sessions[number].summary()["replays"] > 0
        for plain, recomputed in zip(expected[number], results[number], strict=True):
            assert all(torch.equal(one, other) for one, other in zip(plain, recomputed, strict=True))


def test_sessions_that_come_and_go_leave_nothing_behind():
    model, x = deep(layers=3)
    run(model, x)
    gc.collect()
    there = reprise.live_bytes()
    for _ in range(20):
        session = reprise.Session(evict_everything=True)
        with session.step():
            run(model, x)
        del session
    gc.collect()
    assert reprise.live_bytes() == there


@pytest.mark.filterwarnings("ignore:.*it was never begun")  # if it comes before that
def test_ctrl_c_at_any_moment_leaves_no_step_open():
    """Nor where a step begins: then nobody would ever end it."""

    def interrupt(*_):
        raise KeyboardInterrupt

    session, x, interrupted = reprise.Session(evict_everything=True), torch.ones(8, requires_grad=True), 0
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for microseconds in range(1, 600):
            try:
                signal.setitimer(signal.ITIMER_REAL, microseconds * 1e-6)
                with session.step():
                    x.exp().sum().backward()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            with session.step():  # an error if the other one were still open
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 0


def test_a_session_may_be_dropped_with_its_step_open():
    model, x = deep(layers=2)
    step = reprise.Session(evict_everything=True).step()
    step.__enter__()
    run(model, x)
    del step
    gc.collect()
    with reprise.Session().step():
        run(model, x)


def test_a_session_that_is_off_runs_steps_plainly():
    model, x = deep(layers=2)
    session = reprise.Session(evict_everything=True)
    session.enabled = False
    with session.step():
        run(model, x)
    assert session.summary()["replays"] == 0
    assert not session.enabled


# ---- what it tells ---------------------------------------------------------------------------------------------------


def test_the_summary_the_trace_the_plan_and_the_report(tmp_path):
    plain = train(models.transformer)
    session = reprise.Session(plain.budget(0.6), planning_seconds=1, name="mine")
    train(models.transformer, session, steps=4)
    summary = session.summary()
    assert summary["name"] == "mine" and summary["steps"] == 4
    assert summary["followed_plan"]
    assert "mine" in str(session) and "mine" in repr(session) and "<table>" in session._repr_html_()

    trace, plan = session.trace(), session.plan()
    assert trace.peak > session.budget >= plan.budget
    outgrown = summary["promised_peak_bytes"] > session.budget
    assert reprise.simulate(trace, plan)["valid"] == (not outgrown)
    trace.write(tmp_path / "step.trace")
    assert reprise.Trace.read(tmp_path / "step.trace") == trace
    session.report(tmp_path / "page.html", title="A page", seconds=0)
    assert "A page" in (tmp_path / "page.html").read_text()
    curve = session.curve(points=3, seconds=1)
    assert len(curve.points) >= 2 and curve.svg().startswith("<svg")


def test_there_is_no_curve_before_the_first_step():
    with pytest.raises(ValueError, match="run one first"):
        reprise.Session().curve()


def test_measure_runs_a_step_once():
    model, x = deep()
    calls = []

    def step():
        calls.append(1)
        run(model, x)
        return "done"

    measured = reprise.measure(step)
    assert calls == [1] and measured.result == "done"
    assert measured.peak > 8 * x.nbytes
    assert measured.trace.peak <= measured.peak


def test_measure_of_a_session_needs_no_memory_and_changes_nothing():
    model, x = deep(rows=4096)
    run(model, x)
    before = [value.clone() for value in model.parameters()] + [value.grad.clone() for value in model.parameters()]
    real = reprise.measure(lambda: run(model, x))
    calls = []

    def step():
        calls.append(1)
        run(model, x)

    session = reprise.Session()
    measured = session.measure(step)
    assert calls == []  # it ran in a copy of the process
    assert measured.peak == real.peak and measured.trace.peak == real.trace.peak and len(measured.trace) == len(real.trace)
    assert len(measured.curve(points=2, seconds=0.2).points) >= 1
    after = [*model.parameters(), *(value.grad for value in model.parameters())]
    assert all(torch.equal(one, other) for one, other in zip(before, after))
    with pytest.raises(reprise.SessionError, match="operator aten::_local_scalar_dense"):
        session.measure(lambda: model(x).sum().item())
    with pytest.raises(reprise.SessionError, match="ZeroDivisionError"):
        session.measure(lambda: 1 / 0)


def test_run_plans_a_step_that_does_not_fit_and_runs_it_again():
    model, x = deep()
    norm = torch.nn.BatchNorm1d(x.shape[1])
    plain = reprise.measure(lambda: run(model, x))
    calls = []

    def train():
        calls.append(1)
        torch.manual_seed(3)
        y = model[:4](torch.nn.functional.dropout(norm(x), 0.1))
        if len(calls) == 1:  # more than any budget, in the middle of backward
            y.register_hook(lambda gradient: torch.empty(1 << 40, dtype=torch.uint8))
        model[4:](y).pow(2).mean().backward()
        return len(calls)

    def results():
        return [value.grad.clone() for value in model.parameters()] + [value.clone() for value in norm.buffers()]

    def begin_anew():
        model.zero_grad()
        norm.reset_running_stats()

    begin_anew()
    calls.append(0)
    train()
    expected = results()
    begin_anew()
    calls.clear()
    session = reprise.Session(budget=plain.peak * 4, planning_seconds=0.2)
    assert session.run(train) == 2
    assert all(torch.equal(one, other) for one, other in zip(expected, results()))
    assert session.summary()["followed_plan"]
    with pytest.raises(ZeroDivisionError):
        session.run(lambda: 1 / 0)


def test_run_says_which_budget_will_do():
    model, x = deep()
    session = reprise.Session(budget=reprise.live_bytes() + 2 * x.nbytes, planning_seconds=0.2)
    with pytest.raises(reprise.BudgetError, match="no plan was found for this budget") as caught:
        session.run(lambda: run(model, x))
    assert caught.value.floor > session.budget
    assert all(value.grad is None for value in model.parameters())


def test_the_largest_batch_is_found_and_confirmed():
    model, _ = deep()
    width = next(model.parameters()).shape[1]

    def train(batch):
        model(torch.ones(batch, width)).pow(2).mean().backward()
        model.zero_grad()

    def needs(batch):
        return reprise.measure(lambda: train(batch)).peak

    train(2)
    budget = needs(256)
    session = reprise.Session(budget, planning_seconds=0)
    largest = session.largest(train, sizes=[32, 64], at_most=2000, seconds=1)
    assert largest.size >= 256 and largest.peak <= budget
    assert all(size > largest.size for size in largest.refused)
    assert largest.fit.largest >= largest.size and str(largest.size) in str(largest) and str(largest.size) in repr(largest)
    for batch, cost in largest.fit.points:
        assert batch <= 2000 and cost > 0

    with pytest.raises(ValueError, match="sizes has 1: there must be two or more"):
        session.largest(train, sizes=[4])
    with pytest.raises(ValueError, match="does not fit the budget"):
        session.largest(train, sizes=[4, 10 ** 6])
    with pytest.raises(ValueError, match="no budget"):
        reprise.Session().largest(train, sizes=[4, 8])
    with pytest.raises(ZeroDivisionError):
        session.largest(lambda batch: 1 / 0, sizes=[4, 8])


def test_policies_by_name():
    model, x = deep()
    session = reprise.Session(reprise.live_bytes() + (100 << 20), policy={"aten::tanh": "evict"}, planning_seconds=0)
    with session.step():
        run(model, x)
    assert session.summary()["replays"] >= 7
    reprise.Session(policy={"reprise::compiled": "keep", "aten::mul.Tensor": "pack", "keep_products": ""})
    labelled = reprise.Session(reprise.live_bytes() + (100 << 20), policy={"0.*": "keep"}, planning_seconds=0)
    labelled.label_modules(model)
    with labelled.step():
        run(model, x)
    modules = {operator.get("module", "") for operator in labelled.trace().to_dict()["operators"]}
    assert "0.0" in modules


def test_a_fraction_of_memory():
    assert 0 < reprise.fraction_of_memory(0.25) < reprise.fraction_of_memory(1.0)
    with pytest.raises(ValueError):
        reprise.fraction_of_memory(2)


@pytest.mark.parametrize("budget", [None, "1GiB"])
def test_a_trace_has_the_bytes_of_the_last_steps(budget):
    """Those of the optimizer's state, too, which the first step did not have yet."""
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(6)))
    optimizer = torch.optim.Adam(model.parameters())
    session = reprise.Session(budget)
    for _ in range(8):
        with session.step():
            optimizer.zero_grad()
            model(torch.randn(64, 256)).pow(2).mean().backward()
            optimizer.step()
        session.wait_for_plan()
    peak = session.summary()["peak_last_step_bytes"]  # with a little that the optimizer's step has for itself
    assert abs(session.trace().peak - peak) < 0.1 * peak


def test_the_largest_numbers_are_no_limit():
    for budget in (2**60, 2**63 - 1):
        assert reprise.Session(budget=budget).budget is None

"""Training in a session has the bits of plain training: losses, gradients, parameters, buffers and random numbers."""
import contextlib

import models
import pytest
import torch
from trained import train

import reprise


@pytest.mark.parametrize("name", models.ALL)
def test_everything_is_evicted_and_recomputed_with_the_same_bits(name):
    make, _ = models.ALL[name]
    session = reprise.Session(evict_everything=True)
    assert train(make, session, steps=3).steps == train(make, steps=3).steps
    assert session.summary()["replays"] > 0


@pytest.mark.parametrize("name", models.ALL)
def test_within_a_budget_the_bits_are_the_same_and_the_peak_is_kept(name):
    make, share = models.ALL[name]
    plain = train(make)
    session = reprise.Session(plain.budget(share), planning_seconds=0.2)
    within = train(make, session)
    assert within.steps == plain.steps
    assert max(within.peaks) <= session.budget < plain.peak


@pytest.mark.parametrize(
    "around",
    [
        lambda: torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.clone(), lambda tensor: tensor),
        lambda: torch.autograd.graph.save_on_cpu(),
        lambda: torch.autograd.detect_anomaly(check_nan=False),
        lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
    ],
    ids=["saved_tensors_hooks", "save_on_cpu", "detect_anomaly", "profiler"],
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_inside_of_what_torch_has_for_saved_tensors(around):
    plain = train(models.transformer, steps=2)
    within = train(models.transformer, reprise.Session(evict_everything=True), steps=2, around=around)
    assert within.steps == plain.steps


def test_accumulated_gradients_follow_a_plan_with_the_same_bits():
    plain = train(models.transformer, accumulate=3)
    session = reprise.Session(plain.budget(0.6), planning_seconds=1)
    within = train(models.transformer, session, accumulate=3)
    assert within.steps == plain.steps
    assert max(within.peaks) <= session.budget


def test_what_changes_only_the_view_in_place_is_no_write():
    session = reprise.Session(evict_everything=True)
    train(models.reshaped, session, steps=3)
    summary = session.summary()
    assert (summary["traces"], summary["divergences"]) == (1, 0), summary["last_divergences"]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x.copy_(torch.zeros_like(x)),
        lambda x: x.zero_(),
        lambda x: x.mul_(3),
        lambda x: x[1:].add_(x[:-1].clone()),
        lambda x: torch.add(x, 1, out=x),
    ],
    ids=["add_", "copy_", "zero_", "mul_", "a part", "out"],
)
def test_what_a_hook_overwrites_in_backward_is_there_for_those_who_need_it(write):
    """The sine is evicted, and recomputed after its argument was overwritten."""

    def loss(model, step):
        x = torch.randn(64, 64, generator=torch.Generator().manual_seed(step))

        def hook(gradient):
            write(x)

        y = model.weight * x.sin()
        y.register_hook(hook)
        return y.tanh().sum() + x.sum()

    def make():
        return torch.nn.Linear(64, 64, bias=False), loss

    session = reprise.Session(evict_everything=True)
    assert train(make, session, steps=3).steps == train(make, steps=3).steps
    assert session.summary()["replays"] > 0


def test_functions_and_hooks_of_the_user_run_once():
    models.Doubled.calls = 0
    train(models.own_function, steps=1)
    plainly, models.Doubled.calls = models.Doubled.calls, 0
    train(models.own_function, reprise.Session(evict_everything=True), steps=1)
    assert models.Doubled.calls == plainly

    fired = []

    def make():
        model, loss = models.transformer()
        model.blocks[1].register_forward_hook(lambda *_: fired.append("forward"))
        model.blocks[1].register_full_backward_hook(lambda *_: fired.append("backward"))
        return model, loss

    session = reprise.Session(evict_everything=True)
    train(make, session, steps=1)
    assert fired == ["forward", "backward"]
    assert session.summary()["replays"] > 0


def test_an_operator_written_in_python_runs_once():
    calls = []

    @torch.library.custom_op("reprise_test::shifted", mutates_args=())
    def shifted(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x + 1

    shifted.register_autograd(lambda ctx, gradient: gradient)
    x = torch.randn(64, 64, requires_grad=True)
    session = reprise.Session(evict_everything=True)
    with session.step():
        shifted(x.exp()).pow(2).sum().backward()
    assert len(calls) == 1


def test_modes_do_not_see_replays():
    from torch.utils.flop_counter import FlopCounterMode

    def flops(session):
        torch.manual_seed(0)
        model, loss = models.transformer()
        with FlopCounterMode(display=False) as counter, session.step() if session else contextlib.nullcontext():
            loss(model, 0).backward()
        return counter.get_total_flops()

    assert flops(reprise.Session(evict_everything=True)) == flops(None)


def test_backward_may_run_on_another_thread():
    import threading

    def gradients(session):
        torch.manual_seed(0)
        model, loss = models.transformer()
        with session.step() if session else contextlib.nullcontext():
            value = loss(model, 0)
            thread = threading.Thread(target=value.backward)
            thread.start()
            thread.join()
        return [p.grad for p in model.parameters()]

    for plain, recomputed in zip(gradients(None), gradients(reprise.Session(evict_everything=True))):
        assert torch.equal(plain, recomputed)

"""torch.compile in a session: the bits of the compiled model run plainly, and compiled blocks that are evicted and run
again. Most of it with the backend aot_eager, which goes the same way as Inductor and needs no compiler."""
import contextlib
import os

import models
import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trained import train

import reprise

pytestmark = pytest.mark.slow
long = pytest.mark.skipif(not os.environ.get("REPRISE_LONG"), reason="Inductor calls a C++ compiler, for minutes: --long")


@pytest.fixture(autouse=True)
def compiled_anew():
    yield
    torch._dynamo.reset()


def kept(session):
    """What was kept in the last step, by name."""
    return {one["op"]: one for one in session.summary()["kept"]}


def compiled_blocks(backend, blocks=6):
    """A GPT with dropout whose blocks are compiled one by one."""

    def make():
        model = models.Transformer(blocks)
        for block in model.blocks:
            block.compile(backend=backend)
        return model, models.transformer_loss

    return make


def whole(backend, module):
    def make():
        torch._dynamo.reset()
        model = module()
        model.compile(backend=backend)
        return model, lambda model, step: model(
            torch.randn(64, 48, generator=torch.Generator().manual_seed(step))
        ).pow(2).mean()

    return make


# ---- blocks that replay ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=long)])
def test_compiled_blocks_are_evicted_and_run_again_with_the_same_bits(backend):
    make = compiled_blocks(backend, blocks=3)
    plain = train(make, steps=3)
    session = reprise.Session(evict_everything=True, verify="always")
    assert train(make, session, steps=3).steps == plain.steps
    assert session.summary()["replays"] > 0
    names = {operator["name"] for operator in session.trace().to_dict()["operators"]}
    assert ("reprise::compiled" in names) == (backend != "eager")
    assert "torch.compile" not in kept(session)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=long)])
def test_a_gpt_of_compiled_blocks_trains_within_half_of_its_bytes(backend):
    make = compiled_blocks(backend)
    plain = train(make)
    session = reprise.Session(plain.budget(0.5), planning_seconds=1)
    within = train(make, session)
    assert within.steps == plain.steps
    assert max(within.peaks) <= session.budget < plain.peak
    summary = session.summary()
    assert summary["followed_plan"] and summary["replays"] > 0
    assert "reprise::compiled" in {operator["name"] for operator in session.trace().to_dict()["operators"]}


def test_each_graph_of_a_function_with_a_break_is_evicted_by_itself():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(48, 48), nn.Linear(48, 48)

        def forward(self, x):
            x = F.dropout(self.first(x).tanh())
            torch._dynamo.graph_break()
            return F.dropout(self.second(x).tanh()).exp()

    plain = train(whole("aot_eager", Broken), steps=3)
    session = reprise.Session(evict_everything=True)
    assert train(whole("aot_eager", Broken), session, steps=3).steps == plain.steps
    graphs = [operator for operator in session.trace().to_dict()["operators"] if operator["name"] == "reprise::compiled"]
    assert len(graphs) == 2


def test_graphs_for_any_size_are_given_their_sizes_again():
    layer = nn.Linear(32, 32)
    function = torch.compile(lambda x: (F.dropout(layer(x).tanh()) * x.shape[0]).exp(), backend="aot_eager", dynamic=True)

    def gradients(session):
        torch.manual_seed(3)
        result = []
        for rows in (16, 40, 24):
            layer.zero_grad()
            with session.step() if session else contextlib.nullcontext():
                function(torch.randn(rows, 32)).mean().backward()
            result.append(layer.weight.grad.clone())
        return result

    plain = gradients(None)
    session = reprise.Session(evict_everything=True, verify="always")
    assert all(torch.equal(one, other) for one, other in zip(plain, gradients(session), strict=True))
    assert session.summary()["replays"] > 0


def test_an_error_in_compiled_code_keeps_its_type():
    plain = train(compiled_blocks("aot_eager", blocks=3), steps=2)
    session = reprise.Session(plain.budget(0.05), planning_seconds=0)
    with pytest.raises(reprise.BudgetError) as caught:
        train(compiled_blocks("aot_eager", blocks=3), session, steps=2)
    assert caught.value.budget == session.budget


# ---- what is kept ----------------------------------------------------------------------------------------------------


def test_a_graph_that_changes_its_inputs_is_kept():
    class Normalized(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.norm = nn.Linear(48, 48), nn.BatchNorm1d(48)

        def forward(self, x):
            return self.norm(self.layer(x)).tanh()

    plain = train(whole("aot_eager", Normalized), steps=3)
    session = reprise.Session(evict_everything=True)
    assert train(whole("aot_eager", Normalized), session, steps=3).steps == plain.steps
    assert "changes its inputs" in kept(session)["torch.compile"]["why"]
    assert kept(session)["torch.compile"]["bytes"] > 0


def test_what_compiled_code_overwrites_is_there_for_those_who_need_it():
    @torch.compile(backend="aot_eager")
    def shrink(weight):
        with torch.no_grad():
            weight.mul_(0.9)

    def gradient(session):
        torch.manual_seed(1)
        weight, x, scale = torch.randn(64, 64), torch.randn(32, 64), torch.randn(32, 64, requires_grad=True)
        with session.step() if session else contextlib.nullcontext():
            y = ((x @ weight).tanh() * scale).exp()
            shrink(weight)
            y.sum().backward()
        return scale.grad

    plain = gradient(None)
    session = reprise.Session(evict_everything=True, verify="never")
    assert torch.equal(gradient(session), plain)
    assert session.summary()["replays"] > 0


def test_a_function_of_the_users_inside_of_a_graph_runs_once():
    calls = []

    @torch.library.custom_op("reprise_test::counted", mutates_args=())
    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x * 2

    counted.register_fake(torch.empty_like)
    counted.register_autograd(lambda ctx, gradient: gradient * 2)
    weight = torch.randn(64, 64, requires_grad=True)
    function = torch.compile(lambda x: counted((x @ weight).tanh()).exp(), backend="aot_eager")
    x = torch.randn(64, 64)
    function(x)
    for _ in range(2):
        calls.clear()
        session = reprise.Session(evict_everything=True)
        with session.step():
            function(x).sum().backward()
        assert calls == [1]
        assert "not torch's own" in kept(session)["reprise::compiled"]["why"]


def test_random_numbers_that_a_graph_takes_by_itself_are_not_replayed():
    """A backend whose code asks the generator itself, so that no operator is seen to draw."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func

    def compiler(module, inputs):
        def run(*args):
            torch.default_generator.manual_seed(9)
            return module(*args)

        return make_boxed_func(run)

    weight = torch.randn(64, 64, requires_grad=True)
    function = torch.compile(lambda x: (x @ weight).tanh().exp(), backend=aot_autograd(fw_compiler=compiler))
    session = reprise.Session(evict_everything=True)
    with session.step():
        function(torch.randn(64, 64)).sum().backward()
    assert "in a way of its own" in kept(session)["reprise::compiled"]["why"]
    assert session.summary()["replays"] == 0


# ---- raw pointers ----------------------------------------------------------------------------------------------------


def through_pointers():
    """A backend that does as Inductor does, for tanh(tanh(x @ a) @ b): between operators, it writes through pointers into
    buffers that it uses again in place."""
    from torch._dynamo.backends.common import aot_autograd

    def compiler(module, inputs):
        def run(arguments):
            x, a, b = (next(t for t in arguments if tuple(t.shape) == shape) for shape in ((128, 64), (64, 96), (96, 32)))
            arguments.clear()
            first, second = torch.empty(128, 96), torch.empty(128, 32)
            torch.mm(x, a, out=first)
            numpy.tanh(first.numpy(), out=first.numpy())
            torch.mm(first, b, out=second)
            numpy.tanh(second.numpy(), out=second.numpy())
            first.numpy()[:] = 0
            return [second]

        run._boxed_call = True
        return run

    return aot_autograd(fw_compiler=compiler, inference_compiler=compiler)


@pytest.mark.parametrize("verify", ["never", "first_time"])
def test_compiled_code_without_a_gradient_between_operators_that_have_one(verify):
    a, b = torch.randn(64, 96) / 8, torch.randn(96, 32) / 9
    function = torch.compile(lambda x: torch.tanh(torch.tanh(x @ a) @ b), backend=through_pointers())

    def gradients(session):
        torch.manual_seed(3)
        before, after = nn.Linear(64, 64), nn.Linear(32, 32)
        for _ in range(2):
            with session.step() if session else contextlib.nullcontext():
                x = before(torch.randn(128, 64)).tanh()
                with torch.no_grad():
                    features = function(x)
                (after(features * 2).exp().mean() + x.exp().mean()).backward()
        return [parameter.grad for layer in (before, after) for parameter in layer.parameters()]

    plain = gradients(None)
    session = reprise.Session(evict_everything=True, verify=verify)
    assert all(torch.equal(one, other) for one, other in zip(plain, gradients(session), strict=True))
    assert session.summary()["replays"] > 0


def test_memory_that_a_compiled_backward_uses_again_is_not_taken_for_what_was_saved():
    """A backend whose backward leaves a gradient where an activation was, as Inductor does with donated buffers."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func

    memory = []

    def compile_forward(module, inputs):
        def run(*args):
            results = module(*args)
            memory.append({result.data_ptr() for result in results[1:]} - {args[0].data_ptr(), results[0].data_ptr()})
            return results

        return make_boxed_func(run)

    def compile_backward(module, inputs):
        def run(*args):
            (gradient,) = module(*args)
            reused = next(tensor for tensor in args if tensor.data_ptr() in memory[-1])
            reused.numpy()[:] = gradient.numpy()
            return [reused]

        return make_boxed_func(run)

    backend = aot_autograd(fw_compiler=compile_forward, bw_compiler=compile_backward)
    function = torch.compile(lambda x: (x.sin() * x.cos()).tanh().exp(), backend=backend)

    def result(session):
        torch.manual_seed(5)
        x, w = torch.randn(64, 64, requires_grad=True), torch.randn(64, 64, requires_grad=True)
        gradients = []
        x.register_hook(gradients.append)
        with session.step() if session else contextlib.nullcontext():
            later = (w * 3).exp().sum()  # keeps the period open
            function(x).sum().backward()
            assert gradients[0].data_ptr() in memory[-1]
            ((gradients[0] * 1.5).sin() * w).sum().add(later).backward()
        return x.grad, w.grad

    plain = result(None)
    session = reprise.Session(evict_everything=True, verify="never")
    assert all(torch.equal(one, other) for one, other in zip(plain, result(session), strict=True))


def test_modes_see_what_a_compiled_graph_calls():
    from torch.utils.flop_counter import FlopCounterMode

    weight = torch.randn(64, 64, requires_grad=True)
    function = torch.compile(lambda x: (x @ weight).tanh().exp(), backend="aot_eager")
    x = torch.randn(64, 64)
    function(x).sum().backward()

    def flops(session):
        with FlopCounterMode(display=False) as counter, session.step() if session else contextlib.nullcontext():
            function(x).sum().backward()
        return counter.get_total_flops()

    assert flops(reprise.Session(evict_everything=True)) == flops(None) > 0

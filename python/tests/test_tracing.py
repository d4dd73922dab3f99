"""A step is invisible to tracers, and to code that reads the dispatch keys of its thread."""
import contextlib
import gc
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import reprise

SESSIONS: dict[str, Callable[[], reprise.Session]] = {
    "no budget": reprise.Session,
    "a large one": lambda: reprise.Session(budget="8GiB"),
    "everything evicted": lambda: reprise.Session(evict_everything=True),
}


@pytest.fixture(params=SESSIONS)
def session(request: pytest.FixtureRequest) -> reprise.Session:
    return SESSIONS[request.param]()


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def keys() -> str:
    return str(torch._C._dispatch_tls_local_include_set()) + str(torch._C._dispatch_tls_local_exclude_set())


def test_the_keys_of_the_thread_are_the_same_outside_a_step_inside_and_in_backward(session: reprise.Session) -> None:
    def in_backward(step: Any) -> str:
        seen = []
        with step:
            x = torch.ones(4, requires_grad=True)
            y = x.sin()
            y.register_hook(lambda g: seen.append(keys()))
            seen.append(keys())
            y.sum().backward()
        return "\n".join(seen)

    assert in_backward(contextlib.nullcontext()) == in_backward(session.step())


def relu_sin() -> torch.nn.Module:
    class Block(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(super().forward(x)).sin()

    return Block(8, 8)


def mlp() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))


@pytest.mark.parametrize("make", [relu_sin, mlp])
def test_a_compiled_block_in_torchs_checkpoint_is_compiled_once_and_has_plains_gradients(
    make: Callable[[], torch.nn.Module], session: reprise.Session
) -> None:
    graphs = []

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        graphs.append(graph)
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    def train(steps: int, step: Callable[[], Any]) -> list[torch.Tensor]:
        torch._dynamo.reset()
        torch.manual_seed(0)
        module = make()
        compiled = torch.compile(module, backend=backend)
        x = torch.randn(4, 8, requires_grad=True)
        compiled(x)  # outside of any step
        for _ in range(steps):
            with step():
                checkpoint(compiled, x, use_reentrant=False).pow(2).sum().backward()
        return [x.grad, *(p.grad for p in module.parameters())]

    plain = train(3, contextlib.nullcontext)
    of_plain = len(graphs)
    there = train(3, session.step)
    assert all(map(torch.equal, plain, there))
    assert len(graphs) == 2 * of_plain


def gradient(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(torch.mm(x, w).sin().sum(), (w,))[0]


def inputs(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    return torch.randn(2, 4), torch.randn(4, 4, requires_grad=True)


@pytest.mark.parametrize("how", ["real", "fake", "symbolic", "jit", "export"])
def test_a_graph_that_is_traced_in_a_step_is_that_of_plain_torch(how: str, session: reprise.Session) -> None:
    def trace() -> tuple[str, Any]:
        if how == "jit":
            traced = torch.jit.trace(gradient, inputs(1), check_trace=False)
            return str(traced.graph), traced
        if how == "export":
            exported = torch.export.export(mlp(), (torch.ones(3, 8),))
            return str(exported.graph), None
        graph = make_fx(gradient, tracing_mode=how)(*inputs(1))
        return graph.code, graph

    plain, _ = trace()
    with session.step():
        there, graph = trace()
    assert there == plain
    if graph:
        assert torch.allclose(graph(*inputs(2)), gradient(*inputs(2)))


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        x, y = ctx.saved_tensors
        return g * x * y


def test_a_mode_of_the_programs_sees_what_it_sees_without_a_step(session: reprise.Session) -> None:
    class Listing(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            node = torch._C._current_autograd_node()
            self.seen.append(f"{func} in {node.name() if node else None}")
            return func(*args, **(kwargs or {}))

    def run(step: Any) -> list[str]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.LayerNorm(8), torch.nn.Dropout(0.5), torch.nn.Softmax(-1)
        )
        w = torch.randn(3, requires_grad=True)
        with step, Listing() as listing:
            a = torch.rand(10, requires_grad=True)
            b = Product.apply((a.exp() * a).sigmoid())
            c = (b * 2).view(2, 5).relu_()
            loss = (c * c).sum() + model(torch.ones(4, 8)).pow(2).sum() + (w * w).prod() + w.std()
            loss.backward()
            torch.autograd.grad((a.sin() * a).sum(), a, create_graph=True)[0].sum().backward()
        return listing.seen

    assert run(session.step()) == run(contextlib.nullcontext())


@pytest.mark.parametrize("dynamic", [True, None])
def test_a_step_goes_on_being_recorded_after_sizes_were_symbolic(dynamic: bool | None) -> None:
    def block() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh())

    torch.manual_seed(0)
    first = torch.compile(block(), backend="aot_eager", dynamic=dynamic)
    body = torch.nn.Sequential(*(block() for _ in range(12)))
    session = reprise.Session(budget="1MiB")  # all that is saved takes 3
    for rows in 512, 500, 490:
        with session.step():
            body(first(torch.randn(rows, 64))).pow(2).mean().backward()
        body.zero_grad(set_to_none=True)


def test_a_write_after_a_trace_is_seen() -> None:
    p, q = torch.ones(1000), torch.ones(1000, requires_grad=True)
    with reprise.Session(evict_everything=True).step():
        y = p + 1
        z = (q * y).sum()
        del y
        torch.compile(torch.nn.Linear(8, 8), backend="aot_eager", dynamic=True)(torch.randn(5, 8))
        p.mul_(2)  # nothing has saved it
        z.backward()
    assert torch.equal(q.grad, torch.full((1000,), 2.0))


@pytest.mark.parametrize("in_steps", [False, True])
def test_compiled_code_that_the_program_drops_is_gone(in_steps: bool) -> None:
    from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_func

    made = []

    class Code:
        def __init__(self, graph: Any) -> None:
            self.graph = graph

        def __call__(self, *arguments: Any) -> Any:
            return self.graph(*arguments)

    def backend(module: Any, inputs: Any) -> Any:
        def compiler(graph: Any, _: Any) -> Any:
            code = Code(graph)
            made.append(weakref.ref(code))
            return make_boxed_func(code)

        return aot_module_simplified(module, inputs, fw_compiler=compiler)

    session = reprise.Session()
    for _ in range(3):
        with session.step() if in_steps else contextlib.nullcontext():
            model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())
            torch.compile(model, backend=backend)(torch.ones(4, 8)).sum().backward()
    del session, model
    torch.compiler.reset()
    for _ in range(3):
        gc.collect()
    assert made and not any(code() for code in made)

"""In the company of what else torch has for tensors and for backward: the bits of plain training, and a summary that says
what could not be evicted, and why."""
import contextlib

import models
import pytest
import torch
from torch import nn
from torch._higher_order_ops import scan
from torch._higher_order_ops.map import map as higher_order_map
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.checkpoint import checkpoint
from trained import train

import reprise


def kept(session):
    return {one["op"]: one for one in session.summary()["kept"]}


# ---- torch's own checkpoint ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "not reentrant"])
@pytest.mark.parametrize("share", [None, 0.9], ids=["everything evicted", "within a budget"])
def test_blocks_that_torch_runs_again(reentrant, share):
    class Half(models.Transformer):
        def forward(self, tokens):
            x = self.embedding(tokens)
            for index, block in enumerate(self.blocks):
                x = checkpoint(block, x, use_reentrant=reentrant) if index % 2 else block(x)
            return self.head(x)

    def make():
        return Half(), models.transformer_loss

    plain = train(make, steps=3)
    session = reprise.Session(evict_everything=True) if share is None else reprise.Session(plain.budget(share))
    within = train(make, session, steps=3)
    assert within.steps == plain.steps
    if share is None:
        assert session.summary()["replays"] > 0
    else:
        assert max(within.peaks) <= session.budget
    assert ("saved_tensors_hooks" in kept(session)) == (not reentrant)


def test_the_summary_counts_what_hooks_of_the_program_pack():
    session = reprise.Session(evict_everything=True)
    x = torch.randn(64, 64, requires_grad=True)
    with session.step(), torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        x.exp().sum().backward()
    assert kept(session)["saved_tensors_hooks"]["bytes"] == x.nbytes
    assert "saved_tensors_hooks" in str(session)


# ---- functions that transform functions ------------------------------------------------------------------------------


def functional():
    model, _ = models.convolutions()

    def loss(model, step):
        parameters = {name: value * 1.0 for name, value in model.named_parameters()}
        return torch.func.functional_call(model, parameters, (models._images(step),)).pow(2).mean()

    return model, loss


def transformed():
    """Gradients by torch.func.grad inside of the loss, one for each example."""
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1))

    def loss(model, step):
        x = torch.randn(64, 32, generator=torch.Generator().manual_seed(step))
        slope = torch.func.vmap(torch.func.grad(lambda one: model(one).sum()))(x)
        return model(x).pow(2).mean() + slope.pow(2).mean()

    return model, loss


@pytest.mark.parametrize("make", [functional, transformed])
def test_transformed_functions(make):
    plain = train(make, steps=3)
    session = reprise.Session(evict_everything=True)
    assert train(make, session, steps=3).steps == plain.steps
    assert session.summary()["replays"] > 0


# ---- tensors that are not plain --------------------------------------------------------------------------------------


class Wrapped(torch.Tensor):
    """A tensor around another one, that sees every operator on it."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        bare = torch.utils._pytree.tree_map_only(Wrapped, lambda one: one.inner, (args, kwargs or {}))
        result = function(*bare[0], **bare[1])
        return torch.utils._pytree.tree_map_only(torch.Tensor, Wrapped, result)


def gradients(session, function):
    torch.manual_seed(3)
    leaves, loss = function()
    for _ in range(2):
        with session.step() if session else contextlib.nullcontext():
            loss().backward()
    return [leaf.grad.inner if isinstance(leaf.grad, Wrapped) else leaf.grad for leaf in leaves]


def subclass():
    x = torch.randn(64, 64, requires_grad=True)
    w = Wrapped(torch.randn(64, 64)).requires_grad_()
    return [x, w], lambda: (w * x.exp().sin()).tanh().pow(2).sum() + x.cos().exp().sum()


def jagged():
    layer = nn.Linear(16, 16)
    x = torch.randn(64, 16, requires_grad=True)

    def loss():
        nested = torch.nested.nested_tensor_from_jagged(x.exp(), torch.tensor([0, 10, 24, 64]))
        return layer(nested).tanh().values().sum()

    return [x, *layer.parameters()], loss


def nested():
    layer = nn.Linear(16, 16)
    parts = [torch.randn(rows, 16, requires_grad=True) for rows in (5, 9)]

    def loss():
        together = torch.nested.as_nested_tensor([part.exp() for part in parts])
        return torch.nested.to_padded_tensor(layer(together), 0.0).tanh().sum()

    return [*parts, *layer.parameters()], loss


def sparse():
    x = torch.randn(64, 64, requires_grad=True)
    indices = torch.arange(64).repeat(2, 1)

    def loss():
        matrix = torch.sparse_coo_tensor(indices, x.diagonal().exp(), (64, 64))
        return torch.sparse.mm(matrix, x.sin().exp()).sum()

    return [x], loss


@pytest.mark.parametrize("function", [subclass, jagged, nested, sparse])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:Lazily")
def test_tensors_that_are_not_plain(function):
    plain = gradients(None, function)
    session = reprise.Session(evict_everything=True, verify="always")
    for one, other in zip(plain, gradients(session, function), strict=True):
        assert torch.equal(one, other)
    if function is subclass:
        assert kept(session)["saved tensors that are not plain"]["bytes"] > 0


# ---- what torch dispatches in Python, and what batches a backward ----------------------------------------------------

SESSIONS = {"no budget": {}, "a budget": {"budget": "8GiB"}, "everything evicted": {"evict_everything": True}}


def leaf(*shape):
    torch.manual_seed(0)
    return torch.randn(*shape, requires_grad=True)


def cond():
    x = leaf(4)
    torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,)).sum().backward()
    return x.grad


def mapped():
    x = leaf(3, 4)
    higher_order_map(lambda a, b: (a * b).sin(), x, x.detach()[0].clone()).sum().backward()
    return x.grad


def scanned():
    x = leaf(3, 4)
    scan(lambda carried, a: (carried + a, (carried * a).sin()), torch.zeros(4), x)[1].sum().backward()
    return x.grad


def looped():
    x = leaf(4)
    with torch.no_grad():
        y = while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), (torch.tensor(0), x.detach()))[1]
    (x * y).sum().backward()
    return x.grad


def attended():
    with torch.no_grad():
        x = leaf(1, 2, 128, 16).detach()
        return flex_attention(x, x, x)


def cond_in_a_hook():
    x = leaf(4)
    y = x.sin()
    y.register_hook(lambda g: torch.cond(g.sum() > 0, lambda a: a * 2, lambda a: a * 3, (g,)))
    y.sum().backward()
    return x.grad


def compiled(function):
    def run():
        torch._dynamo.reset()
        x = leaf(3, 4)
        torch.compile(function, backend="aot_eager")(x).sum().backward()
        return x.grad

    return run


COMPILED = {
    "compiled cond": compiled(lambda x: torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))),
    "compiled map": compiled(lambda x: higher_order_map(lambda a, b: (a * b).sin(), x, x.detach()[0].clone())),
    "compiled scan": compiled(lambda x: scan(lambda carried, a: (carried + a, (carried * a).sin()), torch.zeros(4), x)[1]),
}
EAGER = {run.__name__: run for run in (cond, mapped, scanned, looped, attended, cond_in_a_hook)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", SESSIONS.values(), ids=SESSIONS)
@pytest.mark.parametrize("run", [*EAGER.values(), *COMPILED.values()], ids=[*EAGER, *COMPILED])
def test_higher_order_operators(run, options):
    plain = run()
    with reprise.Session(**options).step():
        assert torch.equal(run(), plain)


def test_a_higher_order_operator_that_is_made_after_the_import():
    class Twice(torch._ops.HigherOrderOperator):
        def __init__(self):
            super().__init__("twice_of_reprises_tests")

        def __call__(self, x):
            return super().__call__(x)

    twice = Twice()
    twice.py_impl(torch._C.DispatchKey.AutogradCPU)(lambda x: x * 2)
    with reprise.Session().step():
        assert twice(torch.ones(3)).sum() == 6


def noisy(x):
    for _ in range(8):
        x = (x * torch.randn_like(x)).sin()
    return x.pow(2).sum(1)


def batched(x):
    x.requires_grad_()
    y = noisy(x)
    return torch.autograd.grad(y, x, torch.eye(y.numel()), is_grads_batched=True)[0]


def vmapped(x, randomness="error"):
    x.requires_grad_()
    y = noisy(x)
    gradient = torch.vmap(lambda v: torch.autograd.grad(y, x, v, retain_graph=True)[0], randomness=randomness)
    return gradient(torch.eye(y.numel()))


def vmapped_with_randomness(x):
    return vmapped(x, "different")


def jacobian(x):
    return torch.autograd.functional.jacobian(noisy, x, vectorize=True)


@pytest.mark.parametrize("options", [{"evict_everything": True}, {"budget": 0}], ids=["everything evicted", "a budget"])
@pytest.mark.parametrize("run", [batched, vmapped, vmapped_with_randomness, jacobian])
def test_a_batched_backward_that_has_to_draw_again(run, options):
    """The replay is about plain values, whatever batches what asked for it."""

    def result(session):
        torch.manual_seed(0)
        x = torch.linspace(0.1, 3, 1 << 16).view(2, -1)
        with session.step() if session else contextlib.nullcontext():
            return run(x)

    plain = result(None)
    session = reprise.Session(**options)
    if "budget" in options:
        session.budget = reprise.live_bytes() + (4 << 20)
    assert torch.equal(result(session), plain)
    assert session.summary()["replays"] > 0

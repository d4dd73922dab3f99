"""In the company of what else torch has for tensors and for backward: the bits of plain training, and a summary that says
what could not be forgotten, and why."""
import contextlib

import models
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from trained import train

import reprise


def kept(session):
    return {one["op"]: one for one in session.summary()["kept"]}


# ---- torch's own checkpoint ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "not reentrant"])
@pytest.mark.parametrize("share", [None, 0.9], ids=["everything forgotten", "within a budget"])
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
    session = reprise.Session(forget_everything=True) if share is None else reprise.Session(plain.budget(share))
    within = train(make, session, steps=3)
    assert within.steps == plain.steps
    if share is None:
        assert session.summary()["replays"] > 0
    else:
        assert max(within.peaks) <= session.budget
    assert ("saved_tensors_hooks" in kept(session)) == (not reentrant)


def test_the_summary_counts_what_hooks_of_the_program_pack():
    session = reprise.Session(forget_everything=True)
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
    session = reprise.Session(forget_everything=True)
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
    session = reprise.Session(forget_everything=True, verify="always")
    for one, other in zip(plain, gradients(session, function), strict=True):
        assert torch.equal(one, other)
    if function is subclass:
        assert kept(session)["saved tensors that are not plain"]["bytes"] > 0

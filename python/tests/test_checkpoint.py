"""reprise.checkpoint in the place of torch.utils.checkpoint."""
import inspect

import pytest
import torch
import torch.utils.checkpoint
from torch import nn

import reprise


def gradients(call, seed=0):
    torch.manual_seed(seed)
    block = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Dropout(0.3), nn.BatchNorm1d(256), nn.Linear(256, 64))
    x = torch.randn(128, 64, requires_grad=True)
    y = call(block, x)
    y.pow(2).mean().backward()
    return [x.grad, *(p.grad for p in block.parameters()), *block.buffers()]


def same(a, b):
    return all(torch.equal(one, other) for one, other in zip(a, b, strict=True))


def test_the_function_runs_once_with_the_same_bits():
    plain = gradients(lambda block, x: block(x))
    assert same(gradients(lambda block, x: reprise.checkpoint(block, x)), plain)
    assert same(gradients(lambda block, x: reprise.checkpoint(block, x, use_reentrant=False)), plain)


def test_it_takes_everything_that_torchs_takes():
    plain = gradients(lambda block, x: block(x))
    theirs = inspect.signature(torch.utils.checkpoint.checkpoint).parameters.values()
    options = {one.name: one.default for one in theirs if one.kind is one.KEYWORD_ONLY}
    assert {"use_reentrant", "context_fn", "early_stop"} <= options.keys()
    assert same(gradients(lambda block, x: reprise.checkpoint(block, x, preserve_rng_state=True, **options)), plain)


def test_what_autograd_saves_inside_is_evicted():
    block = nn.Sequential(*(nn.Sequential(nn.Linear(128, 128), nn.Tanh()) for _ in range(8)))
    x = torch.randn(1024, 128, requires_grad=True)

    def held(call):
        before = reprise.live_bytes()
        y = call(x)
        return reprise.live_bytes() - before, y

    plain, _ = held(block)
    evicted, y = held(lambda x: reprise.checkpoint(block, x))
    assert evicted < plain / 4
    y.sum().backward()


def test_keywords_results_of_any_kind_and_nesting():
    def inner(x, *, scale):
        return {"y": (x * scale).exp(), "n": 3}

    def outer(x):
        return reprise.checkpoint(inner, x, scale=2.0)["y"].sin()

    x = torch.randn(16, requires_grad=True)
    y = reprise.checkpoint(outer, x)
    y.sum().backward()
    expected = torch.autograd.grad((x * 2).exp().sin().sum(), x)[0]
    assert torch.equal(x.grad, expected)


def test_without_gradients_it_is_a_plain_call():
    with torch.no_grad():
        assert reprise.checkpoint(torch.exp, torch.zeros(3)).tolist() == [1, 1, 1]


def test_errors_of_the_function_come_through_and_the_next_call_works():
    def fails(x):
        x.exp()
        raise LookupError("mine")

    x = torch.randn(4, requires_grad=True)
    with pytest.raises(LookupError, match="mine"):
        reprise.checkpoint(fails, x)
    reprise.checkpoint(torch.exp, x).sum().backward()


def test_a_context_of_torchs_own_is_refused_with_what_to_do():
    with pytest.raises(TypeError, match="policy of a reprise.Session"):
        reprise.checkpoint(torch.exp, torch.zeros(3), context_fn=lambda: None)


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_a_sequence_in_segments(segments):
    def run(call):
        torch.manual_seed(1)
        model = nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.2)) for _ in range(5)))
        x = torch.randn(8, 32, requires_grad=True)
        call(model, x).sum().backward()
        return [x.grad, *(p.grad for p in model.parameters())]

    plain = run(lambda model, x: model(x))
    assert same(run(lambda model, x: reprise.checkpoint_sequential(model, segments, x)), plain)


@pytest.mark.parametrize("container", [nn.ModuleList, lambda parts: nn.Sequential(*parts), list])
@pytest.mark.parametrize("segments", [1, 2, 4])
def test_a_module_that_is_repeated_runs_as_often_as_it_is_there(container, segments):
    torch.manual_seed(0)
    act = nn.Tanh()
    parts = [nn.Linear(8, 8), act, nn.Linear(8, 8), act]
    x = torch.randn(4, 8, requires_grad=True)
    expected = x
    for part in parts:
        expected = part(expected)
    assert torch.equal(reprise.checkpoint_sequential(container(parts), segments, x), expected)


def test_a_wrong_number_of_segments_is_a_value_error():
    with pytest.raises(ValueError, match="from 1 to the 2 functions"):
        reprise.checkpoint_sequential(nn.Sequential(nn.ReLU(), nn.ReLU()), 3, torch.zeros(1))


def test_inside_of_a_session():
    plain = gradients(lambda block, x: block(x))
    session = reprise.Session()
    with session.step():
        within = gradients(lambda block, x: reprise.checkpoint(block, x))
    assert same(within, plain)
    assert session.summary()["steps"] == 1

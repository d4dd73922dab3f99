"""Who calls operators for unwritten.py: PyTorch's own test database, the samples by hand, and guesses for the rest."""

import contextlib
import itertools
import json
import os
import re
import signal
import sys

import torch
from torch.testing._internal import common_methods_invocations as database
from torch.testing._internal.common_modules import module_db
from torch.utils._pytree import tree_map

import unwritten_guesses
import unwritten_samples
from unwritten_sweep import is_plain, replayable_operators, tensors_in

ENOUGH_GUESSES = 8  # that an operator accepts


def with_gradients(results, inputs) -> None:
    """Backward, and backward of that where it has one; each also in the way that has none, which may be another."""
    inputs = [one for one in inputs if one.requires_grad]
    with contextlib.suppress(RuntimeError):
        for _ in range(2):
            results = [one for one in tensors_in(results) if one.requires_grad and one.grad_fn is not None]
            if not results or not inputs:
                return
            gradients = [torch.randn_like(one) for one in results]
            torch.autograd.grad(results, inputs, gradients, retain_graph=True, allow_unused=True)
            results = torch.autograd.grad(results, inputs, gradients, create_graph=True, allow_unused=True)


def dtypes_of(op):
    for dtype in (torch.float32, torch.complex64, torch.int64, torch.bool, torch.bfloat16):
        if op.supports_dtype(dtype, "cpu"):
            yield dtype


def sample_operators(sweep, ops) -> None:
    for number, op in enumerate(ops):
        print(f"\r{number + 1} of {len(ops)} {op.formatted_name:60}", end="", file=sys.stderr, flush=True)
        for dtype in dtypes_of(op):
            gradients = op.supports_autograd and dtype.is_floating_point
            with contextlib.suppress(Exception):  # a sample that this machine cannot make
                for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=gradients), 60):
                    for variant in filter(None, (op.op, op.inplace_variant)):
                        sample_once(sweep, variant, sample, gradients)


def sample_once(sweep, function, sample, gradients) -> None:
    copied = tree_map(lambda one: one.detach().clone().requires_grad_(one.requires_grad)
                      if isinstance(one, torch.Tensor) and is_plain(one) else one,
                      (sample.input, sample.args, sample.kwargs))
    with contextlib.suppress(Exception), sweep:
        torch.manual_seed(3)
        first, args, kwargs = copied
        if gradients and getattr(function, "__name__", "").endswith("_"):
            first = first.clone()  # a leaf cannot be changed in place
        results = function(first, *args, **kwargs)
        if gradients:
            with_gradients(results, tensors_in(copied))


def sample_modules(sweep) -> None:
    for module in module_db:
        for training in (True, False):
            with contextlib.suppress(Exception):
                inputs = module.module_inputs_func(module, device="cpu", dtype=torch.float32, requires_grad=True,
                                                   training=training)
                for sample in inputs:
                    with contextlib.suppress(Exception), sweep:
                        made = sample.constructor_input
                        one = module.module_cls(*made.args, **made.kwargs).train(training)
                        given = sample.forward_input
                        with_gradients(one(*given.args, **given.kwargs),
                                       [*one.parameters(), *tensors_in((given.args, given.kwargs))])


def sample_by_hand(sweep) -> None:
    for name, sample in unwritten_samples.SAMPLES.items():
        torch.manual_seed(3)
        try:
            with sweep:
                with_gradients(*sample())
        except RuntimeError as error:
            print(f"\n{name}: {error}", file=sys.stderr)


def guess(sweep, name: str) -> None:
    """Calls an operator with guessed arguments, in a process of its own.

    What it leaves unwritten then is only told: the arguments may be ones that it does not promise anything about.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(Exception):
            signal.alarm(20)
            base, _, overload = name.removeprefix("aten::").partition(".")
            func = getattr(getattr(torch.ops.aten, base), overload or "default")
            for args, kwargs in unwritten_guesses.guesses(func._schema):
                torch.manual_seed(3)
                sweep.look_at(func, args, kwargs)
                if sweep.calls[name] >= ENOUGH_GUESSES:
                    break
            found = [sweep.calls[name], name in sweep.nondeterministic, sorted(sweep.unwritten.get(name, ()))]
            os.write(writing, json.dumps(found).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    if not told:
        return  # it did not survive
    calls, nondeterministic, unwritten = json.loads(told)
    sweep.calls[name] += calls
    if calls:
        sweep.guessed[name] = {tuple(place) for place in unwritten}
    if nondeterministic:
        sweep.nondeterministic.add(name)


def guess_the_rest(sweep) -> None:
    for name in replayable_operators():
        if not sweep.calls[name]:
            guess(sweep, name)


def every_entry() -> list:
    """The operator database, with its lists of operators on lists of tensors."""
    more = [getattr(database, name) for name in dir(database) if re.fullmatch(r"foreach_\w+_op_db", name)]
    return [*database.op_db, *itertools.chain(*more)]

"""Checks the table in src/torch/recipes/uninitialized.cpp: operators of LibTorch that leave elements uninitialized.

    uninitialized.py            calls the operators of the table, and fails if one is not as its row says: in seconds
    uninitialized.py --search   calls all operators of PyTorch's test databases, and fails if a row is missing: in minutes

The table is kept by hand: search with a new LibTorch, and copy the rows that this prints. It needs the Python package torch,
and to search also numpy, scipy and expecttest.

Below autograd, each call is repeated three times with the same arguments and the same state of the generator: twice on
fresh memory of zeros, and once on fresh memory of junk, which LibTorch's allocator fills in if a flag is set. Results that
differ between the first two are random, and not looked at. Where junk differs from zeros, there are three kinds:

- a result shows zeros and junk as they are: its operator never writes these elements;
- a variant with `out` leaves them in that argument: what was there before stays, so the argument is not overwritten;
- a result differs in another way: its operator reads uninitialized memory, and cannot be replayed.
"""

import collections
import contextlib
import ctypes
import itertools
import re
import sys
import warnings
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

TABLE = Path(__file__).resolve().parent.parent / "src/torch/recipes/uninitialized.cpp"
ROW = re.compile(r'^ +(\{"(.+?)", .*\},)$', re.MULTILINE)
# Not recorded by Reprise: results without contents, or always with the same ones.
IGNORED = re.compile(r"aten::(empty|new_empty|resize|_resize_output|set_?(\.|$)|(zeros|ones|full)_like|new_(zeros|ones|full))")
JUNK = torch.tensor([0xef, 0xbe, 0xed, 0x7f], dtype=torch.uint8)  # LibTorch's, as bytes
LIBRARY = ctypes.CDLL(str(next((Path(torch.__file__).parent / "lib").glob("libc10.*"))))


def tensors_in(tree) -> list:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def is_plain(tensor) -> bool:
    return (tensor.layout == torch.strided and tensor.device.type == "cpu" and not tensor.is_quantized
            and not tensor._is_zerotensor())  # has no memory


def bytes_of(tree):
    return torch.cat([JUNK[:0], *(one.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
                                  for one in tensors_in(tree) if is_plain(one))])


def show_memory(zeros, junk) -> bool:
    """Returns whether all bytes that differ are those that fresh memory was filled with."""
    return zeros.shape == junk.shape and not zeros[zeros != junk].any() and bool(torch.isin(junk[zeros != junk], JUNK).all())


def outcome(func, args, kwargs, contents: str) -> dict:
    """Returns what a call makes on fresh memory of "zero" or "junk": bytes by ("result" or "argument", index)."""
    arguments = func._schema.arguments
    given = dict(zip([one.name for one in arguments], args)) | kwargs
    flag = ctypes.c_bool.in_dll(LIBRARY, f"FLAGS_caffe2_cpu_allocator_do_{contents}_fill")
    with torch.random.fork_rng(devices=[]):
        flag.value = True
        try:
            for one in arguments:
                if one.is_write and one.name in given:
                    given[one.name] = tree_map_only(torch.Tensor, torch.empty_like if one.is_out else torch.clone, given[one.name])
            results = func(*[given[one.name] for one in arguments[:len(args)]], **{name: given[name] for name in kwargs})
        finally:
            flag.value = False
    results = results if isinstance(results, tuple) else (results,)
    made = {("argument", index): bytes_of(given.get(one.name)) for index, one in enumerate(arguments) if one.is_write}
    return made | {("result", index): bytes_of(result) for index, (result, declared) in
                   enumerate(zip(results, func._schema.returns)) if declared.alias_info is None}


def variant_with_out(func, args, kwargs, results):
    """Returns the call of the overload that takes the same arguments and these results as `out`; None if there is none."""
    def types(schema):
        return [(one.name, str(one.type)) for one in schema.arguments if not one.is_out]
    for overload in func.overloadpacket.overloads():
        variant = getattr(func.overloadpacket, overload)
        outs = [one.name for one in variant._schema.arguments if one.is_out]
        if outs and len(outs) == len(results) and types(variant._schema) == types(func._schema):
            return variant, args, kwargs | dict(zip(outs, results))
    return None


class Search(TorchDispatchMode):
    """Checks every operator that is called while this mode is on."""

    def __init__(self):
        super().__init__()
        self.calls = collections.Counter()
        self.found = collections.defaultdict(set)  # by operator: ("result" or "argument", index), ("reads", 0)
        self.signatures = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.look_at(func, args, kwargs)
        results = func(*args, **kwargs)
        made = results if isinstance(results, tuple) else (results,)
        if all(isinstance(one, torch.Tensor) for one in made) and (call := variant_with_out(func, args, kwargs, made)):
            self.look_at(*call)
        return results

    def look_at(self, func, args, kwargs) -> None:
        name = func.name()
        signature = name + str(tree_map_only(torch.Tensor, lambda one: (one.dtype, one.size(), one.stride()), (args, kwargs)))
        if (IGNORED.match(name) or signature in self.signatures or self.calls[name] >= 80
                or not all(map(is_plain, tensors_in((args, kwargs))))):
            return
        self.signatures.add(signature)
        try:
            zeros, again, junk = (outcome(func, args, kwargs, contents) for contents in ("zero", "zero", "junk"))
        except (RuntimeError, IndexError, ValueError, NotImplementedError, TypeError):
            return  # as the call itself
        self.calls[name] += 1
        for place, contents in zeros.items():
            if torch.equal(contents, again[place]) and not torch.equal(contents, junk[place]):
                self.found[name].add(place if show_memory(contents, junk[place]) else ("reads", 0))

    def run(self, function, *args, **kwargs) -> None:
        """Runs forward, backward, and backward of that. Skips what cannot be run."""
        torch.manual_seed(3)
        with contextlib.suppress(Exception), self:
            inputs = [one for one in tensors_in((args, kwargs)) if one.requires_grad]
            inputs += function.parameters() if isinstance(function, torch.nn.Module) else []
            results = function(*args, **kwargs)
            for create_graph in (True, False) if inputs else ():
                results = [one for one in tensors_in(results) if one.grad_fn]
                gradients = [torch.randn_like(one) for one in results]
                results = torch.autograd.grad(results, inputs, gradients, create_graph=create_graph, allow_unused=True)


def call_table(search) -> None:
    """Calls operators that show what the rows of the table say."""
    for kind in list, torch.tensor:
        search.run(torch.nn.functional.ctc_loss, torch.randn(12, 4, 6).log_softmax(2), torch.randint(1, 6, (4, 5)),
                   kind([12, 9, 7, 3]), kind([5, 3, 0, 1]))
    search.run(torch.linalg.lstsq, torch.randn(2, 7, 4), torch.randn(2, 7, 3))
    search.run(torch.nn.LSTM(5, 6), torch.randn(7, 3, 5, requires_grad=True))
    search.run(torch.ops.aten._compute_linear_combination, torch.randn(3, 4, 4), torch.randn(2, 3))


def call_databases(search) -> None:
    from torch.testing._internal import common_methods_invocations as database
    from torch.testing._internal.common_modules import module_db
    for op in itertools.chain(*(getattr(database, name) for name in dir(database) if re.fullmatch(r"(foreach_\w+_)?op_db", name))):
        for dtype in torch.float32, torch.complex64, torch.int64, torch.bool, torch.bfloat16:
            with contextlib.suppress(Exception):  # a sample that this machine cannot make
                gradients = op.supports_autograd and dtype.is_floating_point
                for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=gradients), 60):
                    search.run(op.op, sample.input, *sample.args, **sample.kwargs)
    for module, training in itertools.product(module_db, (True, False)):
        with contextlib.suppress(Exception):
            for sample in module.module_inputs_func(module, "cpu", torch.float32, requires_grad=True, training=training):
                made, given = sample.constructor_input, sample.forward_input
                search.run(module.module_cls(*made.args, **made.kwargs).train(training), *given.args, **given.kwargs)


def row_of(name: str, found) -> str:
    results, arguments = (", ".join(str(index) for what, index in sorted(found) if what == kind) for kind in ("result", "argument"))
    return f'{{"{name}", {{{results}}}, {{{arguments}}}, {"true" if ("reads", 0) in found else "false"}}},'


def main() -> int:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    search = Search()
    call_table(search)
    if sys.argv[1:] == ["--search"]:
        call_databases(search)
    table = {name: row for row, name in ROW.findall(TABLE.read_text())}
    found = {name: row_of(name, places) for name, places in search.found.items()}
    wrong = sorted(name for name in table | found if table.get(name) != found.get(name))
    for name in wrong:
        print(f"table:  {table.get(name, 'no row')}\ncalls:  {found.get(name, f'{search.calls[name]} of {name}, nothing seen')}")
    print(f"{sum(search.calls.values())} calls of {len(search.calls)} operators; {len(table)} rows, {len(wrong)} wrong or missing")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

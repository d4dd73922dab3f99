"""Operators of LibTorch that leave a part of what they make unwritten: found by running all of them.

    unwritten.py                        sweeps, and writes src/torch/unwritten.inc and docs/unwritten.md
    unwritten.py --check [NAME...]      fails unless what the table says about these operators is found again; without
                                        names for all that the samples in unwritten_samples.py reach, in seconds
    unwritten.py --only NAME...         sweeps these entries of PyTorch's operator database, and prints what it finds

It wants the Python package of LibTorch, and what its test database imports (numpy, expecttest, scipy); without them it
ends with code 77, which is "skipped" for ctest.

Below autograd, each operator that a sample calls is called three times more with the same arguments and the same state
of the generator: twice on fresh memory of zeros and once on fresh memory of junk. LibTorch's own allocator fills it, by
two flags that people set who look for reads of such memory. What differs between the first two is not deterministic;
what differs only in the third follows what was in memory before. Samples are those of the operator database
and the module database, forward, backward and twice backward, and those of unwritten_samples.py. An operator whose
variant with `out` takes the same arguments is called in that variant, too.

Three kinds are told apart. A *result* in which zeros and junk show as they are has elements that nobody wrote, and there
is nothing that could be compared. An *argument* that the variant with `out` leaves partly unwritten keeps what was there
before, so it is not overwritten but changed. An operator whose result differs in any other way has *computed* with what
it found in memory: nobody can replay it.
"""

import argparse
import collections
import contextlib
import ctypes
import functools
import itertools
import re
import sys
import warnings
from pathlib import Path

try:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db
except ImportError as error:
    print(f"skipped: PyTorch's operator database cannot be imported ({error})")
    sys.exit(77)

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

import unwritten_samples

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/torch/unwritten.inc"
PAGE = ROOT / "docs/unwritten.md"
MOST_CALLS = 80  # that are looked at, of one overload
MOST_BYTES = 64 << 20  # of the tensors of a call that is looked at

# In-place operators whose result does not depend on the old contents: those of src/torch/operators.cpp.
OVERWRITE = {"fill_", "zero_", "copy_", "bernoulli_", "normal_", "uniform_", "random_", "exponential_", "log_normal_",
             "cauchy_", "geometric_"}
# What src/torch/operators.cpp does not record: contents that nobody has defined yet, or that are always the same.
NOT_RECORDED = re.compile(r"aten::(empty|new_empty|resize|_resize_output|set(_|$)|(zeros|ones|full)_like|new_(zeros|ones|full))")


# ---- which operators there are ----

def schema_of(name: str):
    """The schema of an overload, by its name in the dispatcher."""
    base, _, overload = name.partition(".")
    return torch._C._get_schema(base, overload)


@functools.lru_cache(maxsize=None)
def is_replayable(name: str) -> bool:
    """Whether Reprise would record it: it has a kernel for tensors on the CPU and makes or changes one."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    if NOT_RECORDED.match(name) or has_kernel(name, "CompositeImplicitAutograd"):
        return False
    if not any(has_kernel(name, key) for key in ("CPU", "CompositeExplicitAutograd",
                                                 "CompositeExplicitAutogradNonFunctional")):
        return False
    schema = schema_of(name)
    takes = any("Tensor" in str(argument.type) for argument in schema.arguments)
    draws = any("Generator" in str(argument.type) for argument in schema.arguments)
    writes = any(argument.is_write for argument in schema.arguments)
    makes = any("Tensor" in str(result.type) and result.alias_info is None for result in schema.returns)
    return (takes or draws) and (writes or makes)


def replayable_operators() -> list:
    return sorted(name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::") and is_replayable(name))


# ---- fresh memory ----

class Memory:
    """Fills what LibTorch allocates."""

    JUNK = torch.tensor([0xef, 0xbe, 0xed, 0x7f], dtype=torch.uint8)  # LibTorch's own, as bytes

    def __init__(self):
        folder = Path(torch.__file__).parent / "lib"
        library = ctypes.CDLL(str(next(folder.glob("libc10.*"))))
        self._zero = ctypes.c_bool.in_dll(library, "FLAGS_caffe2_cpu_allocator_do_zero_fill")
        self._junk = ctypes.c_bool.in_dll(library, "FLAGS_caffe2_cpu_allocator_do_junk_fill")

    @contextlib.contextmanager
    def filled_with(self, pattern: str):
        flag = self._zero if pattern == "zeros" else self._junk
        flag.value = True
        try:
            yield
        finally:
            flag.value = False


# ---- one call ----

def tensors_in(tree) -> list:
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]


def is_plain(tensor) -> bool:
    return (type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout == torch.strided
            and tensor.device.type == "cpu" and not tensor.is_quantized)


def contents(tensor):
    """The elements of a tensor as bytes."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8).clone()


def same(one, other) -> bool:
    return one.shape == other.shape and torch.equal(one, other)


def shows_memory(zeros, junk) -> bool:
    """Whether what differs is exactly what fresh memory was filled with."""
    if zeros.shape != junk.shape:
        return False
    different = zeros != junk
    return not zeros[different].any() and bool(torch.isin(junk[different], Memory.JUNK).all())


def fresh_like(tensor):
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)


def run(func, args, kwargs, overwritten, memory, pattern, generators):
    """What a call makes, as {("result" or "argument", index): bytes of each tensor}."""
    schema = func._schema
    for generator, state in generators:
        generator.set_state(state)
    values, names = list(args), [argument.name for argument in schema.arguments]
    given = dict(zip(names, values)) | kwargs
    with memory.filled_with(pattern):
        for argument in schema.arguments:
            if argument.is_write and given.get(argument.name) is not None:
                copy = fresh_like if argument.name in overwritten else torch.clone
                given[argument.name] = tree_map(lambda leaf: copy(leaf) if isinstance(leaf, torch.Tensor) else leaf,
                                                given[argument.name])
        results = func(*[given[name] for name in names[:len(values)]],
                       **{name: given[name] for name in kwargs})
    made = {}
    for index, argument in enumerate(schema.arguments):
        if argument.is_write and argument.name in given:
            made["argument", index] = [contents(one) for one in tensors_in(given[argument.name])]
    results = results if isinstance(results, tuple) else (results,)
    for index, (result, told) in enumerate(zip(results, schema.returns)):
        if told.alias_info is None:
            made["result", index] = [contents(one) for one in tensors_in(result) if is_plain(one)]
    return made


class Sweep(TorchDispatchMode):
    """Looks at every operator that is called while it is on."""

    def __init__(self, only=None):
        super().__init__()
        self.only = only  # names; None: all
        self.calls = collections.Counter()
        self.seen = set()
        self.unwritten = collections.defaultdict(set)  # by name: ("result" or "argument", index), ("computed", 0)
        self.nondeterministic = set()
        self.memory = Memory()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.look_at(func, args, kwargs)
        results = func(*args, **kwargs)
        variant = self.variant_with_out(func, args, kwargs, results)
        if variant:
            self.look_at(*variant)
        return results

    def look_at(self, func, args, kwargs) -> None:
        name = func.name()
        if (self.only is not None and name not in self.only) or self.calls[name] >= MOST_CALLS or not is_replayable(name):
            return
        tensors = tensors_in((args, kwargs))
        if not all(map(is_plain, tensors)) or sum(one.nbytes for one in tensors) > MOST_BYTES:
            return
        signature = (name, str(tree_map(self.described, (args, kwargs))))
        if signature in self.seen:
            return
        self.seen.add(signature)
        overwritten = {argument.name for argument in func._schema.arguments if argument.is_write and
                       (argument.is_out or name.split("::")[1].split(".")[0] in OVERWRITE)}
        own = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, torch.Generator)]
        generators = [(one, one.get_state()) for one in [torch.default_generator, *own]]
        try:
            first, again, other = (run(func, args, kwargs, overwritten, self.memory, pattern, generators)
                                   for pattern in ("zeros", "zeros", "junk"))
        except (RuntimeError, IndexError, ValueError, NotImplementedError, TypeError):
            return  # as the call itself
        finally:
            for generator, state in generators:
                generator.set_state(state)
        self.calls[name] += 1
        for place in first:
            if not all(map(same, first[place], again[place])):
                self.nondeterministic.add(name)
            elif not all(map(same, first[place], other[place])):
                self.unwritten[name].add(place if all(map(shows_memory, first[place], other[place])) else ("computed", 0))

    @staticmethod
    def described(leaf):
        if isinstance(leaf, torch.Tensor):
            return f"{leaf.dtype} {tuple(leaf.size())} {leaf.stride()}"
        return "generator" if isinstance(leaf, torch.Generator) else leaf

    @staticmethod
    def variant_with_out(func, args, kwargs, results):
        """The call of the overload that takes the same arguments and, as `out`, memory for these results."""
        schema = func._schema
        results = results if isinstance(results, tuple) else (results,)
        if any(argument.is_write for argument in schema.arguments) or not all(
                isinstance(one, torch.Tensor) and is_plain(one) for one in results):
            return None
        taken = [(argument.name, str(argument.type)) for argument in schema.arguments]
        for overload in func.overloadpacket.overloads():
            variant = getattr(func.overloadpacket, overload)
            outs = [argument.name for argument in variant._schema.arguments if argument.is_out]
            others = [(one.name, str(one.type)) for one in variant._schema.arguments if not one.is_out]
            if len(outs) == len(results) and others == taken:
                return variant, args, kwargs | dict(zip(outs, results))
        return None


# ---- samples ----

def with_gradients(results, inputs) -> None:
    """Backward, and backward of that where it has one."""
    inputs = [one for one in inputs if one.requires_grad]
    with contextlib.suppress(RuntimeError):
        for _ in range(2):
            results = [one for one in tensors_in(results) if one.requires_grad and one.grad_fn is not None]
            if not results or not inputs:
                return
            gradients = [torch.randn_like(one) for one in results]
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


# ---- the table and the page ----

def places(found, kind) -> list:
    return sorted(index for what, index in found if what == kind)


def table(unwritten) -> str:
    text = f"""\
// Written by scripts/unwritten.py with LibTorch {torch.__version__.split('+')[0]}: results and arguments with unwritten elements, and
// whether it computes with what it found in memory.
"""
    for name in sorted(unwritten):
        results, arguments, computed = (", ".join(map(str, places(unwritten[name], kind)))
                                        for kind in ("result", "argument", "computed"))
        text += f'{{"{name}", {{{results}}}, {{{arguments}}}, {"true" if computed else "false"}}},\n'
    return text


def listed() -> dict:
    """What the table of the repository says."""
    found = {}
    row = re.compile(r'^\{"(.+?)", \{(.*?)\}, \{(.*?)\}, (true|false)\},$', re.MULTILINE)
    for name, results, arguments, computed in row.findall(TABLE.read_text()):
        found[name] = {(kind, int(one)) for kind, text in (("result", results), ("argument", arguments))
                       for one in text.split(", ") if one}
        found[name] |= {("computed", 0)} if computed == "true" else set()
    return found


def page(sweep) -> str:
    every = replayable_operators()
    reached = [name for name in every if sweep.calls[name]]
    missing = [name for name in every if not sweep.calls[name]]

    def row(name):
        schema, found = schema_of(name), sweep.unwritten[name]
        parts = [f"result {index}{' `' + schema.returns[index].name + '`' if schema.returns[index].name else ''}"
                 for index in places(found, "result")]
        parts += [f"argument `{schema.arguments[index].name}`" for index in places(found, "argument")]
        parts += ["computed with what was in memory"] * len(places(found, "computed"))
        return f"| `{name}` | {', '.join(parts)} |\n"

    text = f"""\
# Unwritten elements

Written by `scripts/unwritten.py` with LibTorch {torch.__version__.split('+')[0]}; the tool says how it finds them. These operators leave elements unwritten: of a
result, so that nothing of it is compared when it is rebuilt; or of an argument in their variant with `out`, which then keeps what was
there. Some compute with what they find in fresh memory, so that their results are kept. Operators that nobody has listed are found while training: see "Unwritten elements" in [architecture.md](architecture.md).

| operator | what has unwritten elements |
|---|---|
{''.join(row(name) for name in sorted(sweep.unwritten))}
## How far the sweep reaches

The dispatcher has {len(every)} operators that Reprise may replay. Samples reach {len(reached)} of them, with {sum(sweep.calls.values())} different calls.
Not the same bits twice, on memory of the same contents: {', '.join(f'`{name}`' for name in sorted(sweep.nondeterministic)) or 'none'}.

Not reached ({len(missing)}):
"""
    groups = collections.defaultdict(list)
    for name in missing:
        base, _, overload = name.removeprefix("aten::").partition(".")
        groups[base].append(overload or "(default)")
    return text + "".join(f"- `{base}`: {', '.join(overloads)}\n" for base, overloads in sorted(groups.items()))


def check(names) -> int:
    said = listed()
    names = set(names or said)
    sweep = Sweep(only=names)
    sample_by_hand(sweep)
    wrong = [name for name in sorted(names) if sweep.calls[name] and sweep.unwritten.get(name, set()) != said.get(name, set())]
    for name in wrong:
        print(f"{name}: the table says {sorted(said.get(name, set()))}, and there is {sorted(sweep.unwritten.get(name, set()))}")
    looked_at = sum(1 for name in names if sweep.calls[name])
    print(f"looked at {looked_at} of {len(names)} operators, {len(wrong)} are not as the table says")
    return 1 if wrong or not looked_at else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Finds operators that leave a part of what they make unwritten.")
    parser.add_argument("--check", nargs="*", metavar="NAME")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if options.check is not None:
        return check(options.check)
    sweep = Sweep()
    sample_by_hand(sweep)
    if options.only:
        sample_operators(sweep, [op for op in op_db if op.name in options.only])
        print(table(sweep.unwritten), end="")
        return 0
    sample_modules(sweep)
    sample_operators(sweep, op_db)
    print(file=sys.stderr)
    TABLE.write_text(table(sweep.unwritten))
    PAGE.write_text(page(sweep))
    return 0


if __name__ == "__main__":
    sys.exit(main())

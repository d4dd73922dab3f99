"""The sweep of unwritten.py: looks at every operator that is called, and calls it again on memory that is filled."""

import collections
import contextlib
import ctypes
import functools
import re
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

MOST_CALLS = 80  # that are looked at, of one overload
MOST_BYTES = 64 << 20  # of the tensors of a call that is looked at

# In-place operators whose result does not depend on the old contents: those of src/torch/recipes/operators.cpp.
OVERWRITE = {"fill_", "zero_", "copy_", "bernoulli_", "normal_", "uniform_", "random_", "exponential_", "log_normal_",
             "cauchy_", "geometric_"}
# What src/torch/recipes/operators.cpp does not record: contents that nobody has defined yet, or that are always the same.
NOT_RECORDED = re.compile(r"aten::(empty|new_empty|resize|_resize_output|set_?(\.|$)|(zeros|ones|full)_like|"
                          r"new_(zeros|ones|full))")


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
    names = torch._C._dispatch_get_all_op_names()
    return sorted(name for name in names if name.startswith("aten::") and is_replayable(name))


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
        self.guessed = {}  # reached only with guessed arguments: what is unwritten then
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
        if (self.only is not None and name not in self.only) or self.calls[name] >= MOST_CALLS:
            return
        if not is_replayable(name):
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
                shown = all(map(shows_memory, first[place], other[place]))
                self.unwritten[name].add(place if shown else ("computed", 0))

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

"""Code that torch.compile makes.

A compiled graph writes through raw pointers, so that it is recorded as a whole: as one operator that replays by running
again, or, if it may do more than compute its results, as something opaque whose results are kept. torch has no public place
for that; the three that are changed here are looked up in the one version of torch that the package is built for, and only
once torch.compile has loaded them.
"""
from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from . import _core


def _graph(function: Any, metadata: Any, replayable: bool) -> _core.CompiledGraph:
    """The compiled function of a graph, with what AOTAutograd knows about the graph."""
    written = list(metadata.mutated_graph_handled_indices)
    # Tokens are there for the sake of effects.
    return _core.CompiledGraph(function, replayable and not written and not metadata.tokens, written)


def _watch_graphs(wrappers: Any) -> None:
    """Graphs of AOTAutograd, whatever backend compiles them: with a backward, and without one."""
    with_backward = wrappers.AOTDispatchAutograd.post_compile
    without = wrappers.RuntimeWrapper.post_compile

    @functools.wraps(with_backward)
    def post_compile(spec: Any) -> Any:
        plain = spec.maybe_subclass_meta is None and not spec.backward_state_indices
        if plain and not spec.fw_metadata.is_rng_op_functionalized:
            spec.compiled_fw_func = _graph(_boxed(spec.compiled_fw_func, wrappers), spec.fw_metadata, True)
        return with_backward(spec)

    @functools.wraps(without)
    def post_compile_without(self: Any, compiled_fn: Any, aot_config: Any, *, runtime_metadata: Any) -> Any:
        if not self.trace_joint:
            plain = not runtime_metadata.is_rng_op_functionalized
            compiled_fn = _graph(_boxed(compiled_fn, wrappers), runtime_metadata, plain)
        return without(self, compiled_fn, aot_config, runtime_metadata=runtime_metadata)

    wrappers.AOTDispatchAutograd.post_compile = staticmethod(post_compile)
    wrappers.RuntimeWrapper.post_compile = post_compile_without

    # How backward calls its graph, to which it gives what was saved: the memory of it may get other contents.
    call = wrappers.call_func_at_runtime_with_args

    @functools.wraps(call)
    def call_backward(f: Any, args: Any, steal_args: bool = False, disable_amp: bool = False) -> Any:
        arguments = args if steal_args else list(args)
        return _core.call_code(
            lambda args: call(f, args, steal_args=True, disable_amp=disable_amp), arguments, [], backward=True
        )

    wrappers.call_func_at_runtime_with_args = call_backward


def _boxed(function: Any, wrappers: Any) -> Any:
    return function if getattr(function, "_boxed_call", False) else wrappers.make_boxed_func(function)


def _watch_inductor(output_code: Any) -> None:
    """Code of Inductor's, however it is called: compiled before Reprise was there, too."""
    code = output_code.CompiledFxGraph
    call = code.__call__

    @functools.wraps(call)
    def watched(self: Any, inputs: Sequence[Any]) -> Any:
        if not isinstance(inputs, list):
            inputs = list(inputs)
        return _core.call_code(functools.partial(call, self), inputs, list(self.mutated_input_idxs), backward=False)

    code.__call__ = watched


_watches: dict[str, Callable[[ModuleType], None]] = {
    "torch._functorch._aot_autograd.runtime_wrappers": _watch_graphs,
    "torch._inductor.output_code": _watch_inductor,
}


class _Finder(importlib.abc.MetaPathFinder):
    """Waits until torch.compile loads its modules, which takes seconds that others need not spend."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        watch = _watches.get(name)
        if watch is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                watch(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Watches compiled code from now on, once."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    for name, watch in _watches.items():
        if name in sys.modules:
            watch(sys.modules[name])
    sys.meta_path.insert(0, _Finder())

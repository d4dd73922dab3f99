"""Chains: checkpointing (recomputation of evicted states) for your own closures and arrays of numpy, without torch.

    chain = reprise.Chain(10_000, step, adjoint_of_step, schedule=reprise.schedule.slots(20))
    y = chain.forward(x)
    gradient = chain.backward(gradient_of_loss(y))
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from . import _core, arguments, states
from .handles import Handle
from .planning import Plan, Trace, bytes_of
from .schedule import Schedule, whole

State = Any
Gradient = Any


class Progress(NamedTuple):
    """What an observer of a chain is called with.

    Attributes:
        phase: "forward", "replay", "backward", or "planning": no layer has run, and a plan is being made.
        position: of the layer that has just been run.
        layer: its number.
        replays: how many there were so far.
        stored: bytes that the chain stores now.
        planned: of planning, the share of its time that is spent, 0 to 1.
    """

    phase: str
    position: int
    layer: int
    replays: int
    stored: int
    planned: float


class Resumed(NamedTuple):
    """What `Chain.resume` has found. It is true if there is a pass to go on with.

    Attributes:
        found: False: nothing to go on with; forward begins with the first layer.
        forward: the layer that forward goes on with; the number of layers if it is over.
        backward: layers that backward has left, if it had begun; 0 if it is over, too.
    """

    found: bool
    forward: int
    backward: int | None

    def __bool__(self) -> bool:
        return self.found


class Chain(Handle):
    """A sequence of layers, or steps of time, that runs forward and backward, and remembers only some of its states.

    `forward(k, state)` makes the state after layer k from the state before it. `backward(k, state, gradient)` gets the
    state before the layer again, and makes the gradient with respect to it from the one with respect to the state after
    it. In between, the chain remembers the states that its schedule chooses, evicts the others, and runs forward again
    from the nearest remembered state when backward needs one. Forward has to give the same result every time.

    A state is an array of numpy, a number, or a tuple, list or dict of these; a gradient may be anything. The chain holds
    the arrays that you give it and that forward returns, and not copies of them. So closures get states that they can
    read and not write, and neither may anybody else write to them before backward is over. If a state is a view of an
    array, all of that array stays in memory.

    State k is the one before layer k: state 0 is the input, state n the result. A state "after layer k" is state k+1.
    Layers are positions, 0..n-1; closures get the number that your list has at that position.

    A chain is for one thread at a time. When a closure raises, the exception reaches you, the pass is over, everything
    that was remembered is released, and the chain can be run again.

    Args:
        layers: how many there are; or a list of their numbers, in any order and as often as wanted; or None for as many as
            it takes: see `forward_until`.
        forward: the closure. See `kind` and `tapes`.
        backward: the closure; None: the chain runs forward only.
        schedule: one of `reprise.schedule`; default `every(4)`, and `online(64)` for an unknown number of layers.
        codec: the name of one of `reprise.codecs()`: states are remembered coded. The fields of a state of several arrays
            are coded one by one if they have the same dtype, and kept exactly otherwise.
        disk: a folder, for schedules that use a disk; see `use_disk` for more.
        kind: how forward makes a state. "returns": as above. "in_place": `forward(k, state)` changes the state.
            "into": `forward(k, before, after)` overwrites `after`, which is a state that is not needed any more, or a copy
            of `before`. With the last two, input and states belong to the chain, which copies where it must, and nothing
            is allocated after the first pass.
        tapes: True: layers have tapes, which backward needs in addition to the state. Forward gets one more argument, a bool
            that says whether the tape is wanted, and returns `(state, tape)`, or the tape alone if `kind` is another one;
            backward is `backward(k, state, tape, gradient)`.
        verify: when a state that is made again is compared with the one that was evicted, so that a closure with random
            numbers or a race is a ChainError and not a wrong gradient: "never", "first_time" or "always". Default:
            "first_time", in chains of at most 2^18 layers. With a codec that loses something nothing is compared.
        observer: a function that is called with a `Progress` after every closure, and from time to time while a plan is
            made. What it raises ends the pass.
    """

    def __init__(
        self,
        layers: int | Iterable[int] | None,
        forward: Callable[..., Any],
        backward: Callable[..., Any] | None = None,
        *,
        schedule: Schedule | None = None,
        codec: str | None = None,
        disk: str | os.PathLike[str] | None = None,
        kind: Literal["returns", "in_place", "into"] = "returns",
        tapes: bool = False,
        verify: Literal["never", "first_time", "always"] | None = None,
        observer: Callable[[Progress], object] | None = None,
    ) -> None:
        if not callable(forward):
            raise TypeError(f"forward is {forward!r}: it must be a function of a layer and a state")
        if backward is not None and not callable(backward):
            raise TypeError(f"backward is {backward!r}: it must be a function of a layer, a state and a gradient, or None")
        self._forward = forward
        self._backward = backward
        self._observer: Callable[[Progress], object] | None = None
        self._layers = _layers(layers)
        self._core = _core.Chain(
            self._layers,
            arguments.text(kind, "[chain] kind"),
            arguments.flag(tapes, "[chain] tapes"),
            backward is not None,
        )
        self.observer = observer
        if schedule is not None:
            self.schedule = schedule
        if codec is not None:
            self.codec = codec
        if disk is not None:
            self.use_disk(disk)
        if verify is not None:
            self.verify = verify

    # ---- all layers

    def forward(self, input: State, first: int = 0, *, copy: bool = False) -> State:
        """Runs all layers, or those from position `first` on, and returns the state after the last one.

        Args:
            input: the state before the first of them. It is not to be written to before backward is over, unless it is
                copied, as it is if `kind` is "in_place" or "into".
            first: backward ends at its state, too.
            copy: True: the chain holds a copy of the input.
        """
        arguments.flag(copy, "[chain] copy")
        return self._core.forward(self._functions(), input, whole(first, "the first layer"), copy)

    def forward_until(self, input: State, done: Callable[[int, State], object], *, copy: bool = False) -> State:
        """Runs layers, at least one, until `done(position, state)`, which is called after each layer, returns True. For a
        number of layers that is not known."""
        if not callable(done):
            raise TypeError(f"done is {done!r}: it must be a function of a position and a state")
        return self._core.forward_until(self._functions(), input, done, arguments.flag(copy, "[chain] copy"))

    def backward(self, gradient: Gradient, *, copy: bool = True) -> Gradient:
        """Returns the gradient with respect to the input of forward.

        Args:
            gradient: with respect to the result of forward.
            copy: closures may write to the gradient that they get, and return it. False: the first of them gets this one
                and not a copy of it.
        """
        arguments.flag(copy, "[chain] copy")
        return self._core.backward(self._functions(), states.copy(gradient) if copy else gradient)

    def give_back(self, state: State) -> None:
        """Takes back a state that forward has returned, so that its memory is used again by closures that write to a
        state. Do not use it afterwards."""
        self._core.give_back(state)

    # ---- settings, with effect from the next pass on

    @property
    def layers(self) -> int | list[int] | None:
        """What the chain was made with."""
        return self._layers

    @property
    def schedule(self) -> Schedule:
        """What is remembered: one of `reprise.schedule`."""
        return Schedule(self._core.get_schedule())

    @schedule.setter
    def schedule(self, schedule: Schedule) -> None:
        if not isinstance(schedule, Schedule):
            raise TypeError(f"schedule is {schedule!r}: it must be one of reprise.schedule, such as slots(20)")
        self._core.set_schedule(schedule._core)

    @property
    def enabled(self) -> bool:
        """False: every state is remembered until backward has used it, nothing is replayed, coded or on disk."""
        return self._core.get_enabled()

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._core.set_enabled(arguments.flag(on, "[chain] enabled"))

    @property
    def codec(self) -> str | None:
        """The codec of states that are remembered; None if there is none. One that was set can be changed to another."""
        return self._core.get_codec()

    @codec.setter
    def codec(self, name: str) -> None:
        self._core.set_codec(arguments.text(name, "[chain] codec"))

    @property
    def disk(self) -> str | None:
        """The folder of the disk; None if there is none. See `use_disk`."""
        folder = self._core.get_disk()
        return None if folder is None else os.fspath(folder)

    def use_disk(
        self,
        folder: str | os.PathLike[str],
        *,
        budget: int | str | None = None,
        keep: bool = False,
        transit: int | str | None = None,
    ) -> None:
        """Sets a disk for schedules that use one. Writing and reading ahead go on in the background.

        Args:
            folder: has to exist. The chain makes a folder of its own in it, and removes that in the end.
            budget: the most bytes on disk.
            keep: True: the pass outlives the process, see `resume`.
            transit: bytes of memory for states on their way; default: as much as four states like the first take, one of
                which is being coded. A state that takes more than that to be coded is written as it is; so are all
                states with `keep` and a schedule that limits memory. `store_statistics("disk")["kept_exactly"]` counts
                them.
        """
        self._core.set_disk(
            arguments.path(folder, "[chain] the folder of the disk"),
            None if budget is None else bytes_of(budget, what="[chain] the budget of the disk"),
            arguments.flag(keep, "[chain] keep"),
            None if transit is None else bytes_of(transit, what="[chain] transit"),
        )

    @property
    def verify(self) -> str:
        """When states that are made again are compared: "never", "first_time" or "always"."""
        return self._core.get_verify()

    @verify.setter
    def verify(self, when: Literal["never", "first_time", "always"]) -> None:
        self._core.set_verify(arguments.text(when, "[chain] verify"))

    @property
    def observer(self) -> Callable[[Progress], object] | None:
        """The function that is called with the progress of a pass."""
        return self._observer

    @observer.setter
    def observer(self, observer: Callable[[Progress], object] | None) -> None:
        if observer is not None and not callable(observer):
            raise TypeError(f"observer is {observer!r}: it must be a function of a Progress, or None")
        self._observer = observer

    @property
    def sizes(self) -> dict[str, Any]:
        """What layers cost and how large their states are, for the schedules that need to know: {"input": bytes,
        "gradient": bytes, "other": bytes, "layers": [...]} with a dict for each layer: "state", "tape", "gradient",
        "workspace" in bytes, "forward_cost", "backward_cost". What is left out when it is set has a default. `measure`
        sets all of them."""
        return self._core.get_sizes()

    @sizes.setter
    def sizes(self, sizes: Mapping[str, Any]) -> None:
        if not isinstance(sizes, Mapping):
            raise TypeError(f"sizes are {sizes!r}: they must be a dict like Chain.sizes")
        self._core.set_sizes(dict(sizes))

    def measure(self, input: State) -> None:
        """Runs all layers forward once and measures bytes and costs (in seconds) for the schedules that need them."""
        self._core.measure(self._functions(), input)

    # ---- planning

    def plan_in_background(self, on: bool = True) -> None:
        """On: a pass for which there is no plan yet does not wait for the best one. It is run by the first plan that is
        found, and the other one is made in the background, for the passes that begin when it is there."""
        self._core.plan_in_background(arguments.flag(on, "[chain] plan_in_background: on"))

    def wait_for_plan(self) -> None:
        """Waits for the plan that is being made in the background, if there is one. Ctrl-C ends planning, with the best
        plan so far."""
        self._core.wait_for_plan()

    def cancel_planning(self) -> None:
        """Ends planning that goes on, with the best plan so far. Any thread and the observer may call it."""
        self._core.cancel_planning()

    def plan(self) -> Plan:
        """Returns the plan of the pass that goes on, or of the last one. ChainError if there is none."""
        return Plan(self._core.plan())

    def trace(self) -> Trace:
        """Returns the trace that the plan is for."""
        return Trace(self._core.trace())

    # ---- states by hand

    def save(self, position: int, state: State, *, copy: bool = False) -> None:
        """Remembers a state after this layer, in addition to those of the schedule, until a new pass begins. Backward
        without a forward of the chain starts from these states and from `save_input`. See `by_hand`."""
        position = whole(position, "a layer")
        if position < 0:
            raise ValueError(f"a layer is {position}: it cannot be negative; save_input() saves the state before the first")
        self._core.save(position, state, arguments.flag(copy, "[chain] copy"))

    def save_input(self, state: State, *, copy: bool = False) -> None:
        """Remembers the state before the first layer."""
        self._core.save(-1, state, arguments.flag(copy, "[chain] copy"))

    def by_hand(self, *, maximum: int | None = None, on_disk: bool = False) -> None:
        """Sets how many states may be saved by hand at a time, the input included, and whether they are put on disk."""
        if maximum is not None and whole(maximum, "maximum") < 0:
            raise ValueError(f"maximum is {maximum}: it cannot be negative")
        self._core.by_hand(maximum, arguments.flag(on_disk, "[chain] on_disk"))

    def state(self, position: int) -> State:
        """Returns a copy of the state after this layer. ChainError if it is not remembered."""
        return self._core.state(whole(position, "a layer"))

    def recompute(self, position: int) -> State:
        """Returns the state after any layer, recomputed from the nearest remembered one."""
        return self._core.recompute(self._functions(), whole(position, "a layer"))

    def remembers(self, position: int) -> bool:
        """True if the state after this layer is remembered now. `Schedule.remembers` answers before anything has run."""
        return self._core.remembers(whole(position, "a layer"))

    def clear(self) -> None:
        """Removes everything, statistics included, and what a disk has kept."""
        self._core.clear()

    # ---- a pass that outlives the process

    def resume(self, fingerprint: int = 0) -> Resumed:
        """Goes on with the pass that a process left in the folder of `use_disk(folder, keep=True)`, if there is one.

        The program is the same every time: `use_disk`, `resume`, `forward`, `backward`. While a pass goes on, the states
        that the schedule remembers in forward are also written to the folder, and so are the result, and in backward the
        gradient at each of these states. After a crash at any moment, `forward` goes on from the last state or returns the
        result that is there, and `backward` goes on from the last gradient. They end with the same bits.

        ChainError if the pass is one of another chain, or has another fingerprint: a number of yours for everything else
        that matters, such as parameters.
        """
        if isinstance(fingerprint, bool) or not isinstance(fingerprint, int) or not 0 <= fingerprint < 2**64:
            raise ValueError(f"fingerprint is {fingerprint!r}: it must be a whole number from 0 to 2^64 - 1")
        return Resumed(*self._core.resume(fingerprint))

    # ---- numbers

    def statistics(self) -> dict[str, int]:
        """Returns the numbers of the pass that goes on, or of the last one, all measured. Bytes: "stored", "peak_stored",
        "not_stored" (of states that backward needs and that were not stored), "disk", "peak_disk", "spare". States:
        "remembered", "peak_remembered". Calls: "forward_calls", of which "replays" are for a layer that had run before,
        "backward_calls". "passes" that were begun, ever."""
        return self._core.statistics()

    def store_statistics(self, tier: Literal["packed", "disk"]) -> dict[str, int]:
        """Returns the numbers of the store of coded states, or of the one on disk: see `Store.statistics`."""
        return self._core.store_statistics(arguments.text(tier, "[chain] tier"))

    def __repr__(self) -> str:
        count = len(self._layers) if isinstance(self._layers, list) else self._layers
        return f"<reprise.Chain of {'an unknown number of' if count is None else count} layers, {self.schedule!r}>"

    def _functions(self) -> _core.Functions:
        observer = self._observer
        report = None if observer is None else lambda *progress: observer(Progress(*progress))
        return _core.Functions(self._forward, self._backward, report)


class ChainLoop(Handle):
    """Goes through a chain one layer at a time, if your program has the loop over the layers.

        loop = reprise.ChainLoop(chain)
        for k in range(48):
            x = loop.forward(x)
        for k in reversed(range(48)):
            gradient = loop.backward(gradient)

    The chain remembers and replays the same states as if it ran all layers itself. It remembers copies, since the states
    are yours.
    """

    def __init__(self, chain: Chain) -> None:
        if not isinstance(chain, Chain):
            raise TypeError(f"chain is {chain!r}: it must be a reprise.Chain")
        self._chain = chain
        self._pass = _core.LoopPass()

    def forward(self, input: State, cost: float | None = None) -> State:
        """Runs the next layer and returns the state after it. The first call begins a new pass of the chain, whatever was
        before, and so does the first one after backward is over.

        Args:
            input: the result of the call before.
            cost: of the layer, for the schedules that need it.
        """
        chain = self._chain
        given = None if cost is None else arguments.real(cost, "[chain] cost")
        return chain._core.loop_forward(chain._functions(), self._pass, input, given)

    def backward(self, gradient: Gradient) -> Gradient:
        """Runs backward of the last layer that has not yet run it, and returns the gradient before that layer. Without a
        call of forward it goes through the pass that `Chain.forward` has run, or through the states saved by hand. The
        closure gets this gradient, and not a copy of it."""
        chain = self._chain
        return chain._core.loop_backward(chain._functions(), self._pass, gradient)


def _layers(layers: int | Iterable[int] | None) -> int | list[int] | None:
    if layers is None:
        return None
    if isinstance(layers, Iterable) and not isinstance(layers, (str, bytes)):
        return [whole(number, "the number of a layer") for number in layers]
    return whole(layers, "the number of layers")


__all__ = ["Chain", "ChainLoop", "Progress", "Resumed"]

"""Arguments and closures of a chain that make no sense: an exception with a sentence that says what must be."""
import numpy as np
import pytest
from chains import adjoint, start, step

import reprise
from reprise import schedule


def chain_with(**options):
    return reprise.Chain(4, step, adjoint, **options)


@pytest.mark.parametrize(
    "error, words, wrong",
    [
        (TypeError, "forward is 3", lambda: reprise.Chain(4, 3)),
        (TypeError, "backward is 3", lambda: reprise.Chain(4, step, 3)),
        (TypeError, "whole number", lambda: reprise.Chain(4.5, step)),
        (TypeError, "whole number", lambda: reprise.Chain(True, step)),
        (TypeError, "whole number", lambda: reprise.Chain("four", step)),
        (TypeError, "whole number", lambda: reprise.Chain([1, "two"], step)),
        (ValueError, "negative", lambda: reprise.Chain(-1, step)),
        (ValueError, "2.31", lambda: reprise.Chain(2**40, step)),
        (ValueError, "kind", lambda: chain_with(kind="other")),
        (TypeError, "kind is 3: it must be text", lambda: chain_with(kind=3)),
        (TypeError, "tapes is 'no': it must be True or False", lambda: chain_with(tapes="no")),
        (TypeError, "enabled is 'no': it must be True or False", lambda: setattr(chain_with(), "enabled", "no")),
        (TypeError, "copy is None: it must be True or False", lambda: chain_with().forward(start(), copy=None)),
        (TypeError, "on is 1: it must be True or False", lambda: chain_with().plan_in_background(1)),
        (TypeError, "on_disk is 'yes': it must be True", lambda: chain_with().by_hand(on_disk="yes")),
        (TypeError, "keep is 1: it must be True or False", lambda: chain_with().use_disk("/tmp", keep=1)),
        (TypeError, "disk is 3: it must be a path", lambda: chain_with(disk=3)),
        (TypeError, "schedule", lambda: chain_with(schedule="every(4)")),
        (ValueError, "codec", lambda: chain_with(codec="nobody")),
        (TypeError, "codec", lambda: chain_with(codec=3)),
        (ValueError, "verify", lambda: chain_with(verify="sometimes")),
        (TypeError, "observer", lambda: chain_with(observer=3)),
        (TypeError, "schedule", lambda: setattr(chain_with(), "schedule", None)),
        (ValueError, "slots", lambda: schedule.slots(0)),
        (ValueError, "n", lambda: schedule.every(0)),
        (TypeError, "whole number", lambda: schedule.slots(1.5)),
        (TypeError, "budget", lambda: schedule.budget(None)),
        (ValueError, "budget", lambda: schedule.budget(-5)),
        (ValueError, "seconds", lambda: schedule.budget(5, seconds=-1)),
        (TypeError, "seconds is '5': it must be a number", lambda: schedule.budget(5, seconds="5")),
        (TypeError, "threshold is None: it must be a number", lambda: schedule.selective(None)),
        (ValueError, "-1", lambda: schedule.after([-1])),
        (ValueError, "layer", lambda: schedule.every(3).remembers(6, 6)),
        (ValueError, "sizes", lambda: schedule.budget(5).remembers(6, 2)),
        (TypeError, "nobody knows", lambda: setattr(chain_with(), "sizes", {"layers": [{"bytes": 3}] * 4})),
        (TypeError, "need 'layers'", lambda: setattr(chain_with(), "sizes", {})),
        (TypeError, "no whole number", lambda: setattr(chain_with(), "sizes", {"layers": [{"state": "3"}] * 4})),
        (ValueError, "4", lambda: setattr(chain_with(), "sizes", {"layers": [{"state": 3}] * 5})),
        (TypeError, "not 'object'", lambda: chain_with().forward(object())),
        (TypeError, "not 'MaskedArray'.*asarray", lambda: chain_with().forward(np.ma.masked_array([1.0]))),
        (TypeError, "dtype object", lambda: chain_with().forward(np.array([None]))),
        (TypeError, "dtype >f8", lambda: chain_with().forward(np.zeros(3, ">f8"))),
        (TypeError, "key", lambda: chain_with().forward({(1, 2): np.zeros(3)})),
        (TypeError, "returned None", lambda: reprise.Chain(4, lambda k, x: None).forward(start())),
        (TypeError, "writes", lambda: reprise.Chain(4, lambda k, x: 3, kind="in_place").forward(start())),
        (TypeError, "positional argument", lambda: reprise.Chain(4, lambda x: x).forward(start())),
        (reprise.ChainError, "there is no layer 9", lambda: chain_with().remembers(9)),
        (reprise.ChainError, "layer 9", lambda: chain_with().forward(start(), 9)),
        (reprise.ChainError, "forward comes first", lambda: chain_with().backward(start())),
        (reprise.ChainError, "without a backward", lambda: reprise.Chain(4, step).backward(start())),
        (reprise.ChainError, "no plan", lambda: chain_with().plan()),
        (reprise.ChainError, "keep", lambda: chain_with().resume()),
        (ValueError, "fingerprint", lambda: chain_with().resume(-1)),
        (ValueError, "negative", lambda: chain_with().save(-1, start())),
        (reprise.ChainError, "number of layers", lambda: chain_with().forward_until(start(), lambda k, x: True)),
        (TypeError, "done", lambda: reprise.Chain(None, step).forward_until(start(), 3)),
        (ValueError, "tier", lambda: chain_with().store_statistics("tape")),
        (TypeError, "Chain", lambda: reprise.ChainLoop(3)),
        (reprise.DiskError, "nowhere", lambda: chain_with(disk="/nowhere", schedule=schedule.memory_and_disk(0, 2)).forward(start())),
    ],
)
def test_what_is_wrong_is_an_exception_with_a_sentence(error, words, wrong):
    with pytest.raises(error, match=words):
        wrong()


def test_a_backward_that_returns_nothing_is_an_error():
    chain = reprise.Chain(4, step, lambda k, x, gradient: None)
    chain.forward(start())
    with pytest.raises(TypeError, match="backward of layer 3 returned None"):
        chain.backward(np.ones(64))


def test_a_list_that_has_itself_is_an_error():
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        chain_with().forward(endless)

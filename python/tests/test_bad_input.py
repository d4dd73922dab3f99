"""Arguments that make no sense: an exception that names the argument and says what it must be, and everything works on."""
import copy
import pickle
import threading
import warnings

import pytest
import torch

import reprise

ONE = {"operators": [{"name": "a", "outputs": [0], "cost": 1}], "values": [{"bytes": 8, "maker": 0}], "moments": [{"runs": 0}]}


def trace():
    return reprise.Trace.from_dict(ONE)


def plan():
    return reprise.plan(trace(), 8, moves=1).plan


def session(**options):
    return reprise.Session(**options)


#: What is done, the exception, and words of the sentence that people read.
CASES = {
    "budget of another type": (lambda: session(budget=1.5), TypeError, "option budget is 1.5: it must be a number of bytes"),
    "budget that is no amount": (lambda: session(budget="much"), ValueError, "option budget is 'much': it must be a number of bytes"),
    "budget that is a part of nothing": (lambda: session(budget="50%"), ValueError, "a share of the plain peak such as 0.8x, or none"),
    "multiple that is none": (lambda: session(budget="x"), ValueError, "option budget is 'x': it must be"),
    "budget below zero": (lambda: session(budget=-1), ValueError, "option budget is -1: it must be from 0"),
    "budget set to a list": (lambda: setattr(session(), "budget", [1]), TypeError, "it must be a number of bytes"),
    "verify": (lambda: session(verify="sometimes"), ValueError, "verify is 'sometimes': it must be never"),
    "verify of another type": (lambda: session(verify=True), TypeError, "verify is True: it must be 'never'"),
    "pack": (lambda: session(pack="no"), TypeError, "option pack is 'no': it must be True or False"),
    "planning_seconds": (lambda: session(planning_seconds="5"), TypeError, "planning_seconds is '5': it must be a number"),
    "planning_seconds below zero": (lambda: session(planning_seconds=-1), ValueError, "planning_seconds is -1: it must be"),
    "planning_seconds for ever": (lambda: session(planning_seconds=float("inf")), ValueError, "planning_seconds is inf"),
    "device": (lambda: session(device=3), TypeError, "option device is 3: it must be a device"),
    "device without a name": (lambda: session(device=""), ValueError, "option device is '': it must name a device"),
    "device that nobody knows": (lambda: session(device="gpu"), ValueError, "option device is 'gpu': LibTorch knows no such"),
    "device that is no place": (lambda: session(device="meta"), ValueError, "cannot be counted"),
    "budgets": (lambda: session(budgets="2GiB"), TypeError, "option budgets is '2GiB': it must be a dict from devices"),
    "budgets of nothing": (lambda: session(budgets={}), ValueError, "option budgets is empty"),
    "budgets that are no amounts": (lambda: session(budgets={"cpu": "much"}), ValueError, "the budget of 'cpu' is 'much', and it must be"),
    "budgets below zero": (lambda: session(budgets={"cpu": -1}), ValueError, "option budgets is -1"),
    "budgets of one device": (lambda: session(budgets={"cpu": 9, torch.device("cpu"): 9}), ValueError, "must have one only"),
    "budget beside budgets": (lambda: session(budget=9, budgets={"cpu": 9}), ValueError, "and option budget is 9"),
    "device beside budgets": (lambda: session(device="cpu", budgets={"cpu": 9}), ValueError, "and option device is 'cpu'"),
    "budgets of others": (lambda: setattr(session(), "budgets", {"meta": 9}), ValueError, "meta"),
    "disk": (lambda: session(disk=3), TypeError, "option disk is 3: it must be a path"),
    "host": (lambda: session(host="a lot"), ValueError, "option host"),
    "a host without an accelerator": (lambda: session(host="1MiB"), ValueError, "no accelerator is named"),
    "a disk that is not there": (lambda: session(disk="/nowhere"), OSError, "nowhere"),
    "bytes of no disk": (lambda: session(disk_bytes="1GiB"), ValueError, "option disk_bytes is about a disk"),
    "bytes of a disk": (lambda: session(disk=".", disk_bytes="all"), ValueError, "option disk_bytes is 'all': it must be a number"),
    "sizes that are one": (lambda: session(budget=9).largest(abs, sizes=4), TypeError, "sizes is 4: it must be a list"),
    "wanted sizes that are one": (lambda: reprise.fit({1: trace()}, 8, wanted=4), TypeError, "wanted is 4: it must be a list"),
    "plans": (lambda: session(plans=3), TypeError, "option plans is 3: it must be a path"),
    "plans as bytes": (lambda: session(plans=b"here"), TypeError, "option plans is b'here': it must be a path"),
    "policy": (lambda: session(policy=3), TypeError, "option policy is 3: it must be a dict by names"),
    "policy that is a function": (lambda: session(policy=print), TypeError, "is a dict by names"),
    "policy with another choice": (lambda: session(policy={"aten::mm": "burn"}), ValueError, "it must be keep, evict"),
    "policy for nobody": (lambda: session(policy=["mm"]), ValueError, "it must be an operator"),
    "evict_everything": (lambda: session(evict_everything=1), TypeError, "evict_everything is 1: it must be True or"),
    "end_together": (lambda: session(end_together="no"), TypeError, "end_together is 'no': it must be True or False"),
    "name": (lambda: session(name=None), TypeError, "option name is None: it must be text"),
    "an option that there is not": (lambda: session(verifies="never"), TypeError, "verifies"),
    "enabled": (lambda: setattr(session(), "enabled", "no"), TypeError, "enabled is 'no': it must be True or False"),
    "touched": (lambda: session().touched([1]), TypeError, "is of type list: it must be a tensor"),
    "label_modules": (lambda: session().label_modules("gpt"), TypeError, "'gpt': it must be a torch.nn.Module"),
    "follow": (lambda: session().follow("plan"), TypeError, "'plan': it must be a reprise.Plan"),
    "a curve of nothing": (lambda: session().curve(), ValueError, "run one first"),
    "a report of nothing": (lambda: session().report("page.html"), (ValueError, reprise.Error), "step"),
    "a report to nowhere": (lambda: session().report(7), TypeError, "path is 7: it must be a path"),
    "run": (lambda: session().run("step"), TypeError, "the step is 'step': it must be a function"),
    "measure": (lambda: reprise.measure("step"), TypeError, "the step is 'step': it must be a function"),
    "measure without backward": (lambda: reprise.measure(lambda: 1).curve(), ValueError, "ran no backward"),
    "fraction_of_memory": (lambda: reprise.fraction_of_memory("half"), TypeError, "share is 'half': it must be a number"),
    "fraction_of_memory above 1": (lambda: reprise.fraction_of_memory(2), ValueError, "2"),
    "checkpoint": (lambda: reprise.checkpoint(3, 4), TypeError, "the function is 3: it must be a function"),
    "checkpoint with context_fn": (lambda: reprise.checkpoint(abs, 4, context_fn=abs), TypeError, "use the policy"),
    "checkpoint_sequential": (lambda: reprise.checkpoint_sequential(3, 1, 4), TypeError, "functions is 3: it must be"),
    "no functions": (lambda: reprise.checkpoint_sequential([abs, 3], 1, 4), TypeError, "functions is 3: it must be a"),
    "segments": (lambda: reprise.checkpoint_sequential([abs], "2", 4), TypeError, "segments is '2': it must be a whole"),
    "too many segments": (lambda: reprise.checkpoint_sequential([abs], 2, 4), ValueError, "it must be from 1 to the 1"),
    "plan of no trace": (lambda: reprise.plan(ONE, 8), TypeError, "the trace is of type dict: it must be a reprise.Trace"),
    "plan without a budget": (lambda: reprise.plan(trace(), None), TypeError, "[plan] budget is None: it must be"),
    "planner": (lambda: reprise.plan(trace(), 8, planner="nobody"), ValueError, "planner"),
    "planner of another type": (lambda: reprise.plan(trace(), 8, planner=3), TypeError, "planner is 3: it must be a name"),
    "count": (lambda: reprise.plan(trace(), 8, planner="every", count=0), ValueError, "count is 0: it must be from 1"),
    "seconds": (lambda: reprise.plan(trace(), 8, seconds=float("nan")), ValueError, "seconds is nan: it must be"),
    "moves": (lambda: reprise.plan(trace(), 8, moves=-1), ValueError, "moves is -1: it must be from 0"),
    "seed": (lambda: reprise.plan(trace(), 8, seed=0.5), TypeError, "seed is 0.5: it must be a whole number"),
    "start": (lambda: reprise.plan(trace(), 8, start=ONE), TypeError, "start is of type dict: it must be a reprise.Plan"),
    "points": (lambda: reprise.curve(trace(), points="all"), TypeError, "points is 'all': it must be a whole number"),
    "curve of no trace": (lambda: reprise.curve(None), TypeError, "the trace is None: it must be a reprise.Trace"),
    "simulate": (lambda: reprise.simulate(trace(), trace()), TypeError, "the plan is of type Trace: it must be a"),
    "a file that there is not": (lambda: reprise.Trace.read("/nobody/here"), Exception, "/nobody/here"),
    "a path that is none": (lambda: reprise.Trace.read(3), TypeError, "path is 3: it must be a path"),
    "a dict that is none": (lambda: reprise.Trace.from_dict([1]), TypeError, "is of type list: it must be a dict"),
    "a dict with anything in it": (lambda: reprise.Plan.from_dict({"a": print}), ValueError, "cannot be written as JSON"),
    "a dict that is no trace": (lambda: reprise.Trace.from_dict({"operators": 3}), ValueError, "operators"),
    "a graph that is none": (lambda: reprise.Trace.from_networkx([1]), TypeError, "it must be a networkx.DiGraph"),
    "a step that has not begun": (lambda: session().step().__exit__(None, None, None), RuntimeError, "not happened yet"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_makes_no_sense_is_an_exception_with_a_sentence(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    act, kind, words = CASES[case]
    with pytest.raises(kind) as caught:
        act()
    assert words in str(caught.value)
    assert "incompatible" not in str(caught.value), "pybind11's words, not ours"
    # Everything works on.
    works = session(evict_everything=True)
    x = torch.ones(8, requires_grad=True)
    with works.step():
        x.exp().sum().backward()
    assert torch.equal(x.grad, torch.ones(8).exp())


def test_a_step_inside_of_a_step_is_refused_and_the_outer_one_goes_on():
    outer, inner = session(name="outer", evict_everything=True), session()
    x = torch.ones(8, requires_grad=True)
    with outer.step():
        y = x.exp()
        for again in (inner, outer):
            with pytest.raises(ValueError, match="an open step already, of session 'outer'; close it first"):
                with again.step():
                    pass
        y.sin().sum().backward()
    assert outer.summary()["steps"] == 1 and outer.summary()["replays"] > 0


def test_a_step_without_with_is_a_warning_that_says_so():
    """It is written like the step of an optimizer, and would do nothing."""
    with pytest.warns(UserWarning, match="write `with session.step"):
        session().step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with session().step():
            pass


def test_spaces_around_a_budget_are_no_part_of_it():
    assert session(budget=" 2 GiB ").budget == 2**31
    x = torch.ones(1000, requires_grad=True)
    half = session(budget=" 0.5x ")
    for _ in range(2):
        with half.step():
            x.exp().sum().backward()
    assert half.budget is not None


def test_a_session_has_one_step_at_a_time_on_any_thread():
    """A second one would count as the first one's, and end it."""
    shared = session()
    errors = []

    def work():
        try:
            with shared.step():
                pass
        except Exception as error:
            errors.append(error)

    with shared.step():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert [type(error) for error in errors] == [ValueError]
        assert "one session for each thread" in str(errors[0])
        x = torch.ones(8, requires_grad=True)
        x.exp().sum().backward()
    with shared.step():
        pass


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize(
    "made",
    [
        lambda: reprise.Session(),
        lambda: reprise.Session().step(),
        lambda: reprise.Store("1MiB"),
        lambda: reprise.Chain(3, lambda k, s: s, lambda k, s, g: g),
        lambda: reprise.ChainLoop(reprise.Chain(3, lambda k, s: s, lambda k, s, g: g)),
    ],
    ids=["session", "step", "store", "chain", "loop"],
)
def test_what_has_no_copy_says_so_instead_of_being_an_alias(made, copied):
    with pytest.raises(TypeError, match="cannot be copied or pickled: make another one"):
        copied(made())

"""Passes of a chain that outlive the process."""
import os
import signal

import numpy as np
import pytest
from chains import LAYERS, adjoint, plain, same, start, step

import reprise
from reprise import schedule


def killed_or_done(function):
    """Runs the function in a process of its own. True if it came to its end, False if it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return not os.WIFSIGNALED(status)


@pytest.mark.parametrize("form", ["array", "fields"])
def test_a_pass_goes_on_after_every_kill_with_the_same_bits(form, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()

    def kept_chain(dies_at):
        calls = []

        def alive():
            calls.append(None)
            if len(calls) == dies_at:
                while len(list((folder / "reprise-kept").glob("*"))) < 3:
                    pass  # another thread writes what is kept
                os.kill(os.getpid(), signal.SIGKILL)

        def forward(k, x):
            alive()
            return step(k, x) if form == "array" else {"u": step(k, x["u"]), "t": x["t"] + 1}

        def backward(k, x, gradient):
            alive()
            return adjoint(k, x if form == "array" else x["u"], gradient)

        chain = reprise.Chain(LAYERS, forward, backward, schedule=schedule.memory_and_disk(2, 3), codec="zstd")
        chain.use_disk(folder, keep=True)
        return chain, chain.resume(fingerprint=7)

    def program():
        chain, found = kept_chain(dies_at=20 + 5 * kills)
        with open(tmp_path / "found", "a") as file:
            print(found.forward, file=file)
        y = chain.forward(start() if form == "array" else {"u": start(), "t": 0})
        np.save(tmp_path / "y", y if form == "array" else y["u"])
        np.save(tmp_path / "gradient", chain.backward(np.ones(64)))

    kills = 0
    while not killed_or_done(program):
        kills += 1
        assert kills < 30
    assert kills >= 2 and max(map(int, (tmp_path / "found").read_text().split())) > 0
    expected_y, expected = plain(start(), np.ones(64))
    assert same(np.load(tmp_path / "y.npy"), expected_y) and same(np.load(tmp_path / "gradient.npy"), expected)

    # It is over now, and stays until the next one begins. Another chain refuses it.
    chain, found = kept_chain(dies_at=None)
    assert found == reprise.Resumed(True, LAYERS, 0) and found
    other = reprise.Chain(LAYERS, step, adjoint, codec="zstd")
    other.use_disk(folder, keep=True)
    with pytest.raises(reprise.ChainError, match="fingerprint"):
        other.resume()
    with pytest.raises(reprise.ChainError, match="resume"):
        other.forward(start())
    other.clear()
    assert not other.resume()


@pytest.mark.parametrize("form", ["array", "fields"])
@pytest.mark.parametrize("codec", [None, "zstd", "exact", "small", "bits"])
def test_a_pass_is_resumed_whatever_codec_it_was_kept_with(codec, form, tmp_path):
    """States of more than a megabyte, which are coded."""

    def forward(k, x):
        calls.append(k)
        for array in [x] if form == "array" else x.values():
            array += 0.01 * np.sin(array)

    def run():
        calls.clear()
        chain = reprise.Chain(20, forward, lambda k, x, g: g, kind="in_place", codec=codec, schedule=schedule.every(4))
        chain.use_disk(tmp_path, keep=True)
        found = chain.resume()
        u = np.linspace(0, 1, 200_000)
        y = chain.forward(u if form == "array" else {"u": u, "v": np.zeros(200_000)})
        return found, y if form == "array" else y["u"], list(calls)

    calls: list[int] = []
    found, y, first = run()
    assert not found and len(first) == 20
    found, again, second = run()
    assert found.forward == 20 and second == [] and same(again, y)


def test_a_pass_of_another_codec_is_named_and_can_be_cleared(tmp_path):
    def chain(codec):
        made = reprise.Chain(4, lambda k, x: x + 1, lambda k, x, g: g, codec=codec, schedule=schedule.everything())
        made.use_disk(tmp_path, keep=True)
        return made

    chain("zstd").forward(np.zeros(200_000))
    other = chain("bits")
    with pytest.raises(reprise.DiskError, match="codec 'zstd, by fields' made it"):
        other.resume()
    other.clear()
    assert not other.resume()

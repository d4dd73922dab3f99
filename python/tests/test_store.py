"""Stores of arrays of numpy: budgets, codecs, rules, disks."""
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from beside import beside

import reprise
from reprise import remember

KB = np.arange(128.0)  # 1024 bytes

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_every_kind_come_back_bit_for_bit(dtype, tmp_path):
    bits = np.random.default_rng(0).integers(0, 2, (3, 4, 5, 16), np.uint8)
    array = bits.view(dtype) if dtype != "bool" else bits.astype(bool)
    with reprise.Store(disk=tmp_path) as store:
        forms = [array, array.T, array[::2, :, 1:], np.asfortranarray(array), array[0, 0, 0, 0], array[:0], np.array(array.flat[0])]
        for number, form in enumerate(forms):
            assert store.put(number, form) == "stored"
        store.offload(range(3))
        store.wait()
        for number, form in enumerate(forms):
            assert same(store.get(number), np.asarray(form))
        back = store.take(0)
        back[...] = 0  # it is the caller's
        assert back.flags.owndata or back.base is not None
        assert 0 not in store and len(store) == len(forms) - 1


def test_a_budget_of_memory_is_kept_and_the_oldest_leaves():
    store = reprise.Store("3KiB")
    for number in range(8):
        assert store.put(number, KB + number) == "stored"
    assert store.keys() == ["5", "6", "7"] and store.bytes() <= store.budget() == 3072
    numbers = store.statistics()
    assert numbers["peak_bytes"] <= 3072 and numbers["evictions"] == numbers["dropped"] == 5
    assert same(store.get("6"), KB + 6)
    with pytest.raises(reprise.NotStored, match="room") as caught:
        store.get(2)
    assert isinstance(caught.value, KeyError) and str(caught.value).startswith("[store]")
    assert store.find(2) is None
    with pytest.raises(reprise.DoesNotFit, match="big"):
        store.put("big", np.zeros(1000))
    store.reset_statistics()
    assert store.statistics()["puts"] == 0 and "3 values" in repr(store)


def test_what_leaves_memory_goes_to_disk_and_can_be_fetched_ahead(tmp_path):
    with reprise.Store(3 * 1024, disk=tmp_path, disk_budget="1MiB") as store:
        for number in range(10):
            store.put(number, KB * number)
        assert store.describe(1)["tier"] == "disk" and store.describe(9)["tier"] == "memory"
        assert store.bytes("disk") <= store.budget("disk") == 1 << 20
        for number in range(10):
            assert same(store.get(number), KB * number)
        for number in range(7, 10):
            store.erase(number)
        store.prefetch([3, 4])
        store.wait()
        assert store.describe(3)["tier"] == store.describe(4)["tier"] == "memory"
        assert store.statistics()["moves_to_memory"] == 2 and store.statistics()["peak_bytes"] <= 3 * 1024
        assert os.listdir(tmp_path)
    assert not os.listdir(tmp_path)


def test_giving_up():
    store = reprise.Store(2048, evict="cheapest")
    for key, cost in (("a", 5), ("b", 1), ("c", 3)):
        store.put(key, KB, cost=cost)
    assert store.keys() == ["a", "c"]
    store = reprise.Store(2048, evict="nothing")
    assert [store.put(key, KB) for key in "abc"] == ["stored", "stored", "refused"]


def test_codecs(tmp_path):
    assert {"half", "bfloat16", "int8", "bits", "small", "zstd", "exact"} == set(reprise.codecs())
    store = reprise.Store(codec="half")
    store.put("x", np.linspace(0, 1, 1000))
    described = store.describe("x")
    assert described["bytes"] == 2000 and described["plain_bytes"] == 8000 and described["codec"] == "half"
    assert described["dtype"] == "float64" and described["shape"] == (1000,)
    assert np.abs(store.get("x") - np.linspace(0, 1, 1000)).max() <= 2**-11
    store.put("mask", np.arange(1000) % 3 == 0, codec="bits")
    assert store.describe("mask")["bytes"] < 200
    store.put("large", np.array([1e30]))
    assert store.statistics()["kept_exactly"] == 1 and store.get("large")[0] == 1e30


def test_rules():
    def kept(rule, keys=range(6), cost=float):
        store = reprise.Store(remember=rule)
        for key in keys:
            store.put(key, KB, cost=cost(key))
        return [int(key) for key in store]

    assert kept(None) == kept(remember.all()) == list(range(6)) and kept(remember.none()) == []
    assert kept(remember.every(2), [5, 4, 3]) == [3, 5] and kept(remember.every_key(2)) == [0, 2, 4]
    assert kept(remember.costly(4)) == [4, 5]
    offers = []
    assert kept(lambda offer: offers.append(offer) or offer.cost > 3) == [4, 5]
    assert offers[1] == reprise.Offer("1", 1, 1024, 1.0)
    store = reprise.Store(remember=remember.none())
    assert store.put(1, KB) == "not remembered"
    store.remember = lambda offer: True
    assert store.put(1, KB) == "stored"
    store.enabled = False
    assert store.put(2, KB) == "not remembered" and 1 in store

    def fails(offer):
        raise LookupError(offer.key)

    store = reprise.Store(remember=fails)
    with pytest.raises(LookupError, match="here"):
        store.put("here", KB)
    assert len(store) == 0
    store.remember = lambda offer: store.put(offer.key + "'", KB) if len(offer.key) < 3 else True
    assert store.put("a", KB) == "stored" and store.keys() == ["a", "a'", "a''"]


def test_values_are_kept_for_another_process(tmp_path):
    program = """
import os, signal, sys
import numpy as np, reprise
store = reprise.Store(disk=sys.argv[1], keep=True, codec="zstd")
store.put("x", np.arange(1000))
store.put("y", np.ones(5))
store.offload(["x", "y"])
store.wait()
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with reprise.Store(disk=tmp_path, keep=True) as store:
        assert store.keys() == ["x", "y"] and same(store.get("x"), np.arange(1000))
        store.take("y")
    with reprise.Store(disk=tmp_path, keep=True) as store:
        assert store.keys() == ["x"]
    (file,) = [name for name in (tmp_path / "reprise-kept").iterdir() if name.stat().st_size > 100]
    file.write_bytes(file.read_bytes()[:-3] + b"abc")
    with pytest.raises(reprise.DiskError, match=file.name) as caught:
        reprise.Store(disk=tmp_path, keep=True).get("x")
    assert isinstance(caught.value, OSError)


def test_many_threads_use_one_store(tmp_path):
    store = reprise.Store("64KiB", disk=tmp_path, remember=lambda offer: True)
    wrong = []

    def work(thread):
        random = np.random.default_rng(thread)
        for number in range(100):
            key = int(random.integers(0, 50))
            if random.random() < 0.5:
                store.put(key, np.full(512, float(key)))
            elif (found := store.find(key)) is not None and not (found == key).all():
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and store.statistics()["peak_bytes"] <= 65536
    store.close()


def test_other_threads_run_while_a_value_is_stored():
    store = reprise.Store()
    array = np.frombuffer(np.random.default_rng(0).bytes(8 << 20), np.uint8) & 15
    ran = []
    with beside(lambda: ran.append(True)):
        for _ in range(100):  # a slow machine may be done with one before it begins with another thread
            store.put("x", array, codec="zstd")
            if ran:
                break
        while_storing = bool(ran)
    assert while_storing


def test_an_array_that_is_contiguous_is_not_copied():
    array = np.zeros(1 << 20)
    store = reprise.Store(evict="nothing", memory=0)
    assert store.put("x", array[:0]) == "stored"
    seen = []
    original = np.ascontiguousarray
    try:
        np.ascontiguousarray = lambda a: seen.append(np.shares_memory(original(a), a)) or original(a)
        reprise.Store().put("x", array)
        reprise.Store().put("x", array.reshape(1024, 1024))
    finally:
        np.ascontiguousarray = original
    assert seen == [True, True]
    back = reprise.Store()
    back.put("x", array)
    assert back.get("x").base is not None  # the memory that the library has read into


def closed():
    store = reprise.Store()
    store.close()
    store.close()
    return store


@pytest.mark.parametrize(
    "error, words, wrong",
    [
        (ValueError, "memory", lambda: reprise.Store(-1)),
        (ValueError, "many", lambda: reprise.Store("many")),
        (TypeError, "memory", lambda: reprise.Store(1.5)),
        (ValueError, "disk=", lambda: reprise.Store(keep=True)),
        (reprise.DiskError, "nowhere", lambda: reprise.Store(disk="/nowhere")),
        (TypeError, "keep is 'no': it must be True or False", lambda: reprise.Store(disk="/tmp", keep="no")),
        (TypeError, "disk is 3: it must be a path", lambda: reprise.Store(disk=3)),
        (TypeError, "enabled is 0: it must be True or False", lambda: setattr(reprise.Store(), "enabled", 0)),
        (ValueError, "evict", lambda: reprise.Store(evict="newest")),
        (TypeError, "evict is None: it must be text", lambda: reprise.Store(evict=None)),
        (ValueError, "codec", lambda: reprise.Store(codec="nobody")),
        (TypeError, "codec is 3: it must be text", lambda: reprise.Store(codec=3)),
        (TypeError, "remember", lambda: reprise.Store(remember=3)),
        (ValueError, "0", lambda: remember.every(0)),
        (ValueError, "positive", lambda: remember.every(-1)),
        (TypeError, "threshold is 'much': it must be a number", lambda: remember.costly("much")),
        (TypeError, "key", lambda: reprise.Store().put(1.5, KB)),
        (TypeError, "key", lambda: reprise.Store().get(None)),
        (TypeError, "key", lambda: True in reprise.Store()),
        (TypeError, "dtype object", lambda: reprise.Store().put(1, [None])),
        (TypeError, "dtype <U", lambda: reprise.Store().put(1, "text")),
        (TypeError, "dtype >i4", lambda: reprise.Store().put(1, np.zeros(3, ">i4"))),
        (TypeError, "MaskedArray", lambda: reprise.Store().put(1, np.ma.masked_array([1, 2], [True, False]))),
        (ValueError, "cost", lambda: reprise.Store().put(1, KB, cost=float("nan"))),
        (TypeError, "cost is '3': it must be a number", lambda: reprise.Store().put(1, KB, cost="3")),
        (ValueError, "codec", lambda: reprise.Store().put(1, KB, codec="nobody")),
        (TypeError, "keys", lambda: reprise.Store().prefetch("abc")),
        (ValueError, "tier", lambda: reprise.Store().bytes("tape")),
        (reprise.NotStored, "7", lambda: reprise.Store().describe(7)),
        (reprise.Error, "closed", lambda: closed().put(1, KB)),
        (reprise.Error, "closed", lambda: len(closed())),
    ],
)
def test_what_is_wrong_is_an_exception_with_a_sentence(error, words, wrong):
    with pytest.raises(error, match=words):
        wrong()

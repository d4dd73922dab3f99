"""Architectures of HuggingFace transformers train within a budget with the bits of plain training: three of them, and all
with REPRISE_LONG=1."""
import os
import pathlib
import sys

import pytest
from trained import train

import reprise

pytestmark = pytest.mark.slow
pytest.importorskip("transformers", reason="the zoo is skipped: it is made of transformers, which cannot be had")

sys.path.append(str(pathlib.Path(__file__).parents[2] / "benchmarks"))

from zoo_models import ARCHITECTURES, FEW  # noqa: E402

LONG = bool(os.environ.get("REPRISE_LONG"))


@pytest.mark.parametrize("name", ARCHITECTURES if LONG else FEW)
def test_an_architecture_trains_within_a_budget_with_the_same_bits(name):
    make = ARCHITECTURES[name].make
    plain = train(make)
    session = reprise.Session(plain.budget(0.6), planning_seconds=1)
    within = train(make, session)
    assert within.steps == plain.steps
    assert max(within.peaks) <= session.budget < plain.peak
    assert session.summary()["replays"] > 0


@pytest.mark.parametrize("name", ARCHITECTURES if LONG else ())
def test_an_architecture_is_evicted_and_recomputed_with_the_same_bits(name):
    make = ARCHITECTURES[name].make
    session = reprise.Session(evict_everything=True)
    assert train(make, session, steps=2).steps == train(make, steps=2).steps
    assert session.summary()["replays"] > 0

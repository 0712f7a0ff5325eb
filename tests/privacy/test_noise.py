"""Noise sources: types, rules, and how seeded streams are derived."""

import os

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.privacy.noise import InsecureSeededNoise, SecureNoise

SOURCES = [SecureNoise(), InsecureSeededNoise(1)]
by_name = pytest.mark.parametrize("source", SOURCES, ids=lambda source: type(source).__name__)


def draws(source):
    return [*source.laplace(50.0, 5), *source.gaussian(50.0, 5), *source.words(5)]


@by_name
@pytest.mark.parametrize("size", [0, 1, 7])
def test_draws_are_integers_of_the_asked_size(source, size):
    for drawn in (source.laplace(3.0, size), source.gaussian(3.0, size)):
        assert drawn.shape == (size,)
        assert drawn.dtype == np.int64
    assert source.words(size).shape == (size,)
    assert source.words(size).dtype == np.uint64


@by_name
@pytest.mark.parametrize("scale", [5, 5.0, np.float64(5), np.float32(5)])
def test_any_kind_of_number_is_a_scale(source, scale):
    assert source.laplace(scale, 2).shape == source.gaussian(scale, 2).shape == (2,)


@by_name
@pytest.mark.parametrize("scale", [0, -1.0, float("nan"), float("inf"), None])
def test_a_scale_must_be_positive(source, scale):
    with pytest.raises(ParameterError, match="scale must be"):
        source.laplace(scale, 1)
    with pytest.raises(ParameterError, match="scale must be"):
        source.gaussian(scale, 1)


@by_name
def test_scales_from_tiny_to_huge(source):
    assert not source.laplace(1e-3, 100).any()
    assert not source.gaussian(1e-2, 100).any()
    # |x| / scale is below 1/1000 with probability about 1/1000 each: all ten, never.
    assert (np.abs(source.laplace(2.0**40, 10)) > 2**30).any()
    assert (np.abs(source.gaussian(2.0**40, 10)) > 2**30).any()


def test_only_the_systems_source_is_secure():
    assert SecureNoise().secure
    assert not InsecureSeededNoise(0).secure
    with pytest.raises(TypeError, match="unexpected keyword argument 'secure'"):
        InsecureSeededNoise(0, secure=True)


def test_the_secure_source_draws_from_the_operating_system(monkeypatch):
    """Given the system's bytes, every draw that is made here is known: nothing else is in it."""
    asked = []

    def urandom(n_bytes):
        asked.append(n_bytes)
        return np.random.default_rng(len(asked)).bytes(n_bytes)

    monkeypatch.setattr(os, "urandom", urandom)
    found = []
    for _ in range(2):
        asked.clear()
        found.append([*SecureNoise().words(5), *SecureNoise().gaussian(50.0, 5)])
        assert asked[0] == 40
    assert found[0] == found[1]


def test_the_seeded_source_says_so_in_its_repr():
    assert repr(InsecureSeededNoise(3, ("bank",))).startswith("InsecureSeededNoise(seed=3")


@pytest.mark.parametrize("seed", [-1, 1.5, None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ParameterError, match="seed must be a whole number >= 0"):
        InsecureSeededNoise(seed)


def test_seeded_draws_repeat_and_seeds_differ():
    assert draws(InsecureSeededNoise(7)) == draws(InsecureSeededNoise(7))
    assert draws(InsecureSeededNoise(7)) != draws(InsecureSeededNoise(8))


def test_a_source_moves_on():
    source = InsecureSeededNoise(7)
    assert draws(source) != draws(source)


def test_spawn_depends_on_seed_and_labels_only():
    untouched, used = InsecureSeededNoise(7), InsecureSeededNoise(7)
    draws(used)
    assert draws(untouched.spawn("bank")) == draws(used.spawn("bank"))
    nested = InsecureSeededNoise(7).spawn("bank").spawn("local")
    assert draws(nested) == draws(InsecureSeededNoise(7, ("bank", "local")))


def test_spawned_streams_differ():
    root = InsecureSeededNoise(7)
    streams = [
        root,
        root.spawn("bank"),
        root.spawn("shop"),
        root.spawn("bank").spawn("shop"),
        root.spawn("bankshop"),
        root.spawn("bank,shop"),
        root.spawn("bank', 'shop"),
        InsecureSeededNoise(8).spawn("bank"),
    ]
    assert len({tuple(draws(stream)) for stream in streams}) == len(streams)


def test_secure_draws_never_repeat():
    source = SecureNoise()
    # Two equal runs of 5 words have probability 2^-320.
    assert source.words(5).tolist() != source.words(5).tolist()
    assert source.spawn("a").words(5).tolist() != source.spawn("a").words(5).tolist()
    assert source.spawn("a").secure

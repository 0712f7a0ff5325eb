import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from scipy import stats

from splitmeans.errors import ParameterError
from splitmeans.privacy.keyed_noise import KeyedNoise

KEY = bytes(range(32))
# Each statistical test below fails by chance with this probability; the keys are fixed, so it
# either always fails or never does.
CHANCE = 1e-6


def test_the_same_key_gives_the_same_draws() -> None:
    first, second = KeyedNoise(KEY), KeyedNoise(KEY)
    for _ in range(2):
        assert np.array_equal(first.gaussian(3.5, 50), second.gaussian(3.5, 50))
        assert np.array_equal(first.laplace(2.0, 50), second.laplace(2.0, 50))
        assert np.array_equal(first.words(50), second.words(50))


def test_draws_go_on_and_keys_and_labels_differ() -> None:
    noise = KeyedNoise(KEY)
    found = [noise.gaussian(50.0, 40), noise.gaussian(50.0, 40)]
    found += [KeyedNoise(KEY).spawn(label).gaussian(50.0, 40) for label in ("", "a", "b")]
    found.append(KeyedNoise(bytes(32)).gaussian(50.0, 40))
    found.append(KeyedNoise(KEY).spawn("a").spawn("b").gaussian(50.0, 40))
    assert len({draws.tobytes() for draws in found}) == len(found)


def test_a_label_does_not_depend_on_what_was_drawn() -> None:
    used = KeyedNoise(KEY)
    used.words(100_000)
    assert np.array_equal(used.spawn("x").words(9), KeyedNoise(KEY).spawn("x").words(9))


def test_words_are_the_cipher_in_a_row() -> None:
    noise = KeyedNoise(KEY)
    words = np.concatenate([noise.words(size) for size in (0, 1, 8191, 3, 30_000)])
    cipher = Cipher(algorithms.ChaCha20(KEY, bytes(16)), mode=None).encryptor()
    expected = np.frombuffer(cipher.update(bytes(8 * words.size)), dtype="<u8")
    assert np.array_equal(words, expected)


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_key_has_32_bytes(length: int) -> None:
    with pytest.raises(ParameterError, match="key must be 32 bytes"):
        KeyedNoise(bytes(length))


def test_the_key_is_not_shown() -> None:
    assert KEY.hex() not in repr(KeyedNoise(KEY))
    assert str(KEY) not in repr(KeyedNoise(KEY))


@pytest.mark.parametrize("scale", [0.3, 1.0, 1.7, 4.0, 12.25])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_law(kind: str, scale: float) -> None:
    """Chi-square of 20,000 draws against the probabilities by their formula."""
    drawn = getattr(KeyedNoise(KEY).spawn(f"{kind} {scale}"), kind)(scale, 20_000)
    values = np.arange(-400, 401)
    law = np.exp(-(values**2) / (2 * scale**2) if kind == "gaussian" else -np.abs(values) / scale)
    _check_law(drawn, values, law / law.sum())


def test_a_law_of_another_scale_would_be_noticed() -> None:
    """The test above can fail: 5 % more noise is far beyond chance."""
    values = np.arange(-400, 401)
    law = np.exp(-(values**2) / (2 * 4.2**2))
    drawn = KeyedNoise(KEY).gaussian(4.0, 20_000)
    with pytest.raises(AssertionError):
        _check_law(drawn, values, law / law.sum())


def _check_law(drawn: np.ndarray, values: np.ndarray, law: np.ndarray) -> None:
    common = law * drawn.size >= 10
    counts = np.array([(drawn == value).sum() for value in values[common]])
    observed = np.append(counts, drawn.size - counts.sum())
    expected = np.append(law[common], 1 - law[common].sum()) * drawn.size
    if expected[-1] < 1:
        observed, expected = (
            observed[:-1],
            expected[:-1] * observed[:-1].sum() / expected[:-1].sum(),
        )
    assert stats.chisquare(observed, expected).pvalue > CHANCE

"""To Arrow and back without pandas."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitmeans.table.plain_arrow import flags_array, flags_of, text_array

LOADED = """
import sys
import numpy as np
from splitmeans import VerticalKMeans
X = [np.random.default_rng(p).normal(scale=0.2, size=(300, 2)) for p in range(2)]
VerticalKMeans(2, bounds=(-1, 1), random_state=0).fit(X).labels_
print(sorted({"pandas", "sklearn", "scipy.special", "numba"} & set(sys.modules)))
"""


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]))))
def test_text_is_what_arrow_makes_of_it(values):
    made = text_array(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.large_string()))


@given(st.lists(st.booleans()), st.integers(0, 20), st.integers(0, 20))
def test_flags_are_what_numpy_makes_of_them(values, skip, most):
    array = pa.array(values, pa.bool_()).slice(skip, most)
    assert flags_of(array).tolist() == values[skip : skip + most]
    assert flags_of(array).dtype == np.bool_
    back = flags_array(flags_of(array))
    back.validate(full=True)
    assert back.equals(array)


@pytest.mark.parametrize("given", [np.array([True, False]), pa.chunked_array([[True], [False]])])
def test_other_flags_stay_as_they_are(given):
    assert np.flatnonzero(flags_of(given)).tolist() == [0]


def test_a_fit_loads_no_library_that_it_does_not_need():
    """Each takes longer to load than the fit takes; numba is there until kernels are compiled."""
    for _ in range(2):
        found = subprocess.run(
            [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=300
        )
    assert found.stdout == "[]\n"

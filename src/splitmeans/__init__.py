"""Common customer segments across organisations, without pooling data.

Organisations that hold different columns about the same people find k-means centres over all
columns. Each releases noisy local clusters and memberships to a server that never sees rows. The
noise protects a user from the server, even one that breaks the rules, and from readers of the
result; protection between parties holds only while the server follows the protocol.
"""

from typing import TYPE_CHECKING, Any

from splitmeans._version import __version__
from splitmeans.errors import (
    DataError,
    ParameterError,
    PrivacyError,
    ProtocolError,
    SplitmeansError,
    StudyError,
)
from splitmeans.study import (
    Budget,
    Column,
    DecoyOptions,
    DetailOptions,
    PartySpec,
    SketchOptions,
    Study,
)

if TYPE_CHECKING:
    from splitmeans.analysis.result import Result
    from splitmeans.estimator import VerticalKMeans
    from splitmeans.forecasting.forecast import forecast
    from splitmeans.party.labels import segment_probabilities
    from splitmeans.plan.facts import PrivacyFacts
    from splitmeans.privacy.noise import InsecureSeededNoise
    from splitmeans.simulate.datasets import demo_customers
    from splitmeans.synopsis.synopsis import Synopsis
    from splitmeans.table.prepare import prepare_table

__all__ = [
    "Budget",
    "Column",
    "DataError",
    "DecoyOptions",
    "DetailOptions",
    "InsecureSeededNoise",
    "ParameterError",
    "PartySpec",
    "PrivacyError",
    "PrivacyFacts",
    "ProtocolError",
    "Result",
    "SketchOptions",
    "SplitmeansError",
    "Study",
    "StudyError",
    "Synopsis",
    "VerticalKMeans",
    "__version__",
    "demo_customers",
    "forecast",
    "prepare_table",
    "segment_probabilities",
]

# Loaded on first use: scikit-learn, numba and Arrow take seconds to import.
_LAZY = {
    "InsecureSeededNoise": "splitmeans.privacy.noise",
    "PrivacyFacts": "splitmeans.plan.facts",
    "Result": "splitmeans.analysis.result",
    "Synopsis": "splitmeans.synopsis.synopsis",
    "VerticalKMeans": "splitmeans.estimator",
    "demo_customers": "splitmeans.simulate.datasets",
    "forecast": "splitmeans.forecasting.forecast",
    "prepare_table": "splitmeans.table.prepare",
    "segment_probabilities": "splitmeans.party.labels",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'splitmeans' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)

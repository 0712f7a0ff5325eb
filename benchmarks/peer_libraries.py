"""Libraries of others that do not load as they are."""

import importlib
import importlib.util
import sys
import types
from typing import Any


def import_diffprivlib() -> Any:
    """Return `diffprivlib.models`.

    Version 0.6.6 does not load beside scikit-learn 1.9, because its random forests use names that
    are gone there. Its k-means does not use them, so an empty module stands in for the forests.
    """
    try:
        return importlib.import_module("diffprivlib.models")
    except ImportError:
        if importlib.util.find_spec("diffprivlib") is None:
            raise
    forest = types.ModuleType("diffprivlib.models.forest")
    vars(forest).update(RandomForestClassifier=None, DecisionTreeClassifier=None)
    sys.modules[forest.__name__] = forest
    return importlib.import_module("diffprivlib.models")

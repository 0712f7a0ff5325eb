"""What scikit-learn asks of an estimator, without loading scikit-learn.

Importing scikit-learn takes longer than a fit of 20,000 users, and a fit needs nothing of it. So an
estimator keeps its parameters itself, and scikit-learn's base classes join in where scikit-learn is
used; see `estimator.VerticalKMeans`.
"""

import functools
import inspect
import sys
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np

from splitmeans.errors import ParameterError

_LONGEST = 300  # characters of one parameter that `repr` shows


class Parameters:
    """Parameters of an estimator: the arguments of `__init__`, kept under their names."""

    @classmethod
    def _defaults(cls) -> Mapping[str, Any]:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]  # not self
        return {parameter.name: parameter.default for parameter in parameters}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` is there for scikit-learn, nothing is nested."""
        return {name: getattr(self, name) for name in sorted(self._defaults())}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; return the estimator."""
        known = self._defaults()
        for name, value in params.items():
            if name not in known:
                raise ParameterError(
                    f"Invalid parameter {name!r} for estimator {type(self).__name__}; "
                    f"it must be one of {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = {name: repr(getattr(self, name, None)) for name in self._defaults()}
        changed = [
            f"{name}={text if len(text) <= _LONGEST else text[:_LONGEST] + '...'}"
            for name, text in given.items()
            if text != repr(self._defaults()[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


class Estimator(Parameters):
    """A clusterer that joins scikit-learn's base classes where scikit-learn is in use.

    Its class becomes one that has them too, under the same name: when it is made, if scikit-learn
    is loaded by then, and otherwise when scikit-learn first asks it what it is.
    """

    def _join_if_loaded(self) -> None:
        """Join where scikit-learn is loaded; for the end of `__init__`."""
        if "sklearn.base" in sys.modules:
            self._join()

    def _join(self) -> None:
        if not _has_joined(type(self)):
            own: Any = type(self)
            joined: Any = _with_scikit_learn(own)
            self.__class__ = joined

    def __sklearn_tags__(self) -> Any:
        self._join()
        return self.__sklearn_tags__()  # that of scikit-learn by now

    def set_output(self, *, transform: str | None = None) -> Self:
        """Have `transform` give a "pandas" or "polars" table, as in scikit-learn."""
        self._join()
        return self.set_output(transform=transform)

    def transform(self, X: Any) -> Any:
        """Return the distance of each row to each centre, in scaled units (simulation only)."""
        raise NotImplementedError

    # What learns from rows; each estimator has arguments of its own.
    fit: Any

    def fit_predict(self, X: Any, y: None = None, **kwargs: Any) -> Any:
        """Fit and return the joint labels (simulation only)."""
        return self.fit(X, **kwargs).labels_

    def fit_transform(self, X: Any, y: None = None, **kwargs: Any) -> Any:
        """Fit and return what `transform` does (simulation only)."""
        return self.fit(X, **kwargs).transform(X)


def _has_joined(cls: type[Any]) -> bool:
    from sklearn.base import BaseEstimator

    return issubclass(cls, BaseEstimator)


@functools.cache
def _with_scikit_learn(cls: type[Any]) -> type[Any]:
    """Return an estimator's class with scikit-learn's base classes behind its own."""
    from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin

    # Here, for scikit-learn to see it: what `set_output` asks for is done around it.
    def transform(self: Any, X: Any) -> Any:
        return cls.transform(self, X)

    def reduce(self: Any, protocol: Any) -> Any:
        return _made_again, (cls, self.__getstate__())

    own = {
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__reduce_ex__": reduce,
        "__sklearn_tags__": TransformerMixin.__sklearn_tags__,
        "set_output": TransformerMixin.set_output,
        "transform": transform,
    }
    return type(cls.__name__, (cls, TransformerMixin, ClusterMixin, BaseEstimator), own)


def _made_again(cls: type[Any], state: Any) -> Any:
    """Return a stored estimator; the class that it had is found by the one that it comes from."""
    made = object.__new__(cls)
    made.__dict__.update(state)
    made._join_if_loaded()
    return made


def check_fitted(estimator: Any, attribute: str) -> None:
    """Raise scikit-learn's `NotFittedError` unless the estimator has what a fit gives it."""
    if not hasattr(estimator, attribute):
        from sklearn.exceptions import NotFittedError

        name = type(estimator).__name__
        raise NotFittedError(f"This {name} instance is not fitted yet; call fit first")


def seeds_of(random_state: Any, size: int) -> Any:
    """Draw seeds from what scikit-learn takes for a `random_state`, as its own estimators do."""
    if random_state is None:
        state: Any = np.random
    elif isinstance(random_state, Integral):
        state = np.random.RandomState(int(random_state))
    else:
        from sklearn.utils import check_random_state

        state = check_random_state(random_state)
    return state.randint(np.iinfo(np.int32).max, size=size)

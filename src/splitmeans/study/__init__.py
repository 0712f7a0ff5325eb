"""The study: every public fact that the participants agree on, and what follows from it alone."""

from splitmeans.study.id_rules import IdKey, IdRules
from splitmeans.study.options import Budget, DecoyOptions, DetailOptions, SketchOptions
from splitmeans.study.parties import Column, KeyColumn, PartySpec
from splitmeans.study.renewal import Renewal
from splitmeans.study.study import (
    ASSUMED_USERS,
    DEFAULT_DELTA,
    EQUAL,
    EVERYONE,
    GRID_METHODS,
    Study,
)

__all__ = [
    "ASSUMED_USERS",
    "DEFAULT_DELTA",
    "EQUAL",
    "EVERYONE",
    "GRID_METHODS",
    "Budget",
    "Column",
    "DecoyOptions",
    "DetailOptions",
    "IdKey",
    "IdRules",
    "KeyColumn",
    "PartySpec",
    "Renewal",
    "SketchOptions",
    "Study",
]

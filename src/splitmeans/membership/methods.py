"""All membership methods, by the name that studies call them; dispatch reads these records."""

from collections.abc import Mapping
from typing import Any

from splitmeans.membership.decoy.method import METHOD as DECOY
from splitmeans.membership.method import MembershipMethod
from splitmeans.membership.sketch.method import METHOD as SKETCH
from splitmeans.study import Study

METHODS: Mapping[str, MembershipMethod[Any, Any]] = {
    method.facts.name: method for method in (DECOY, SKETCH)
}


def method_of(study: Study) -> MembershipMethod[Any, Any]:
    """Return the record of a study's membership method."""
    return METHODS[study.membership]

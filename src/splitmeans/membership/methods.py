"""All membership methods, by the name that studies call them; dispatch reads these records."""

from collections.abc import Mapping
from typing import Any

from splitmeans.membership.decoy.method import METHOD as DECOY
from splitmeans.membership.exact.method import METHOD as EXACT
from splitmeans.membership.independent.method import METHOD as INDEPENDENT
from splitmeans.membership.ldp.method import METHOD as LDP
from splitmeans.membership.method import MembershipMethod
from splitmeans.membership.sketch.method import METHOD as SKETCH
from splitmeans.membership.sketch_paper.method import METHOD as SKETCH_PAPER
from splitmeans.study import Study

METHODS: Mapping[str, MembershipMethod[Any, Any]] = {
    method.facts.name: method for method in (DECOY, SKETCH, SKETCH_PAPER, LDP, INDEPENDENT, EXACT)
}


def method_of(study: Study) -> MembershipMethod[Any, Any]:
    """Return the record of a study's membership method."""
    return METHODS[study.membership]

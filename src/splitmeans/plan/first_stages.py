"""Which stages a study has, with their noise."""

from splitmeans.plan.bounds_stage import bounds_stage
from splitmeans.plan.categories_stage import categories_stage
from splitmeans.plan.size_stage import size_law, size_stage, sizing_parties
from splitmeans.plan.stages import Stage
from splitmeans.privacy.split import Precisions
from splitmeans.study import Study


def first_stages(study: Study, precisions: Precisions) -> tuple[Stage, ...]:
    """Return what is released before the main releases; a function of the study alone."""
    sized = size_stage(study, size_law(precisions.size)) if sizing_parties(study) else None
    learned = (
        bounds_stage(study, precisions.bounds),
        categories_stage(study, precisions.categories),
    )
    return tuple(stage for stage in (sized, *learned) if stage is not None)

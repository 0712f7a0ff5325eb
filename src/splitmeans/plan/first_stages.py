"""Which stages a study has, with their noise."""

from splitmeans.plan.bounds_stage import bounds_stage
from splitmeans.plan.categories_stage import categories_stage
from splitmeans.plan.size_stage import LaplaceSize, gaussian_size, size_stage, sizing_parties
from splitmeans.plan.stages import Stage
from splitmeans.privacy.split import Precisions, Shares
from splitmeans.study import Study


def first_stages(
    study: Study, precisions: Precisions | None, shares: Shares | None
) -> tuple[Stage, ...]:
    """Return what is released before the main releases; a function of the study alone."""
    stages = [] if not sizing_parties(study) else [_size_stage(study, precisions, shares)]
    if precisions is not None:
        learned = (
            bounds_stage(study, precisions.bounds),
            categories_stage(study, precisions.categories),
        )
        stages += [stage for stage in learned if stage is not None]
    return tuple(stages)


def _size_stage(study: Study, precisions: Precisions | None, shares: Shares | None) -> Stage:
    if shares is not None:
        return size_stage(study, LaplaceSize(scale=1 / shares.count_epsilon))
    assert precisions is not None
    if study.membership_facts.needs_count:
        return size_stage(study, LaplaceSize(scale=1 / precisions.size))
    return size_stage(study, gaussian_size(precisions.size))

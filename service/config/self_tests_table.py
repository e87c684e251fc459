"""`[self_tests]`: the self-tests that the service requests by itself."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class SelfTestsTable(BaseModel):
    """`[self_tests]`: the schedule of self-tests. No disk is tested by itself until a key is set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    short_days: float | None = Field(
        default=None,
        ge=1,
        le=365,
        description="Days between two short self-tests of a disk; none are scheduled when it is not set.",
    )
    long_days: float | None = Field(
        default=None,
        ge=7,
        le=365,
        description="Days between two long self-tests of a disk; none are scheduled when it is not set.",
    )
    long_tests_at_once: int = Field(
        default=8,
        ge=1,
        le=1_000,
        description="Most long self-tests at the same time in the whole cluster; a host never runs two.",
    )

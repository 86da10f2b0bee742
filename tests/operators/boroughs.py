"""The spatial operators under names that no other test has, as a module that workers import."""

from __future__ import annotations

import tamis
from tamis.operators import spatial


@tamis.operator("borough_in(string)", reads=spatial.PLACE, check=spatial.expect_region)
def borough_in(event, region):
    return spatial.default_regions().loc_in(event, region)


@tamis.operator("borough_within(string, double)", reads=spatial.PLACE, check=spatial.expect_region)
def borough_within(event, region, metres):
    return spatial.default_regions().loc_within(event, region, metres)


@tamis.operator("metres_from(string, ?double)", reads=spatial.PLACE, check=spatial.expect_region)
def metres_from(event, region):
    return spatial.default_regions().distance_from(event, region)


@tamis.operator("tests_all(?string)")
def tests_all(event):
    return " ".join(f"{name}={event[name]}" for name in sorted(event))

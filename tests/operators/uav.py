"""Liu's scenario (§2.1): cameras on unmanned aerial vehicles over New York, S1 to S5.

The pattern recognisers are stand-ins that read what is in the picture; places are plain
coordinates in metres.
"""

from __future__ import annotations

from math import hypot

import tamis

PLACES = {"TimesSquare": (0.0, 0.0), "StatueOfLiberty": (-4_000.0, -8_000.0)}
REGIONS = {"Bronx": (2_000.0, 8_000.0, 9_000.0, 16_000.0)}  # x and y, lowest and highest

SUBSCRIPTIONS = {
    "S1": "loc_in('Bronx') AND chase_pattern('policeCar', 'anyCar')",
    "S2": "loc_in('Bronx') AND mob_pattern(?people) AND ?people > 50",
    "S3": "loc_within('TimesSquare', 5000) AND traffic_pattern('congestion') "
    "AND pedestrian_count(?ped) AND ?ped > 250",
    "S4": "loc_in('Bronx') AND traffic_pattern('congestion') AND traffic_pattern('accident') "
    "AND police_car_count(?pol) AND ?pol < 2",
    "S5": "distance_from('StatueOfLiberty', ?x) AND ?x < 1000 AND tour_boat_count(?y) "
    "AND coast_guard_boat_count(?z) AND ?y > 2 * ?z",
}

LOCATION = ["x", "y"]


@tamis.operator("loc_in(string)", reads=LOCATION)
def loc_in(event, region):
    west, east, south, north = REGIONS[region]
    return west <= event["x"] <= east and south <= event["y"] <= north


@tamis.operator("loc_within(string, double)", reads=LOCATION)
def loc_within(event, place, metres):
    return distance_from(event, place) <= metres


@tamis.operator("distance_from(string, ?double)", reads=LOCATION)
def distance_from(event, place):
    x, y = PLACES[place]
    return hypot(event["x"] - x, event["y"] - y)


@tamis.operator("chase_pattern(string, string)", reads=["chases"], cost=0.05)
def chase_pattern(event, chaser, chased):
    return [chaser, chased] in event.get("chases", [])


@tamis.operator("mob_pattern(?integer)", reads=["mobs"], cost=0.1)
def mob_pattern(event):
    return list(event.get("mobs", []))


@tamis.operator("traffic_pattern(string)", reads=["traffic"], cost=0.05)
def traffic_pattern(event, pattern):
    return pattern in event.get("traffic", [])


def count_of(name):
    def count(event):
        return event.get(name)

    count.__qualname__ = f"count_{name}"
    return count


for counted, attribute in (
    ("pedestrian_count", "pedestrians"),
    ("police_car_count", "police_cars"),
    ("tour_boat_count", "tour_boats"),
    ("coast_guard_boat_count", "coast_guard_boats"),
):
    globals()[counted] = tamis.operator(f"{counted}(?integer)", reads=[attribute], cost=0.02)(
        count_of(attribute)
    )

# What each camera sees, and the subscriptions that must hear of it, with their bindings.
EVENTS = [
    (
        {"x": 5_000.0, "y": 12_000.0, "chases": [["policeCar", "anyCar"]], "mobs": [20, 80]},
        {"S1": {}, "S2": {"people": 80}},
    ),
    ({"x": 5_000.0, "y": 12_000.0, "mobs": [50]}, {}),
    ({"x": 0.0, "y": 12_000.0, "chases": [["policeCar", "anyCar"]], "mobs": [80]}, {}),
    (
        {"x": 3_000.0, "y": 4_000.0, "traffic": ["congestion"], "pedestrians": 251},
        {"S3": {"ped": 251}},
    ),
    ({"x": 3_000.1, "y": 4_000.0, "traffic": ["congestion"], "pedestrians": 251}, {}),
    ({"x": 0.0, "y": 0.0, "traffic": ["congestion"], "pedestrians": 250}, {}),
    (
        {"x": 2_000.0, "y": 9_000.0, "traffic": ["accident", "congestion"], "police_cars": 1},
        {"S4": {"pol": 1}},
    ),
    ({"x": 2_000.0, "y": 9_000.0, "traffic": ["accident"], "police_cars": 1}, {}),
    ({"x": 2_000.0, "y": 9_000.0, "traffic": ["accident", "congestion"]}, {}),
    (
        {"x": -4_300.0, "y": -8_400.0, "tour_boats": 5, "coast_guard_boats": 2},
        {"S5": {"x": 500.0, "y": 5, "z": 2}},
    ),
    ({"x": -4_300.0, "y": -8_400.0, "tour_boats": 4, "coast_guard_boats": 2}, {}),
    ({"x": -4_600.0, "y": -8_800.0, "tour_boats": 9, "coast_guard_boats": 0}, {}),
    ({"tour_boats": 9, "coast_guard_boats": 0}, {}),  # no location: the operators fail
]

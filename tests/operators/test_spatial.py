"""Places and regions: the real boroughs of New York, and shapes whose distances are known."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import InputError
from tamis.operators import spatial
from tamis.operators.spatial import METRES_PER_DEGREE, Regions, haversine

# Well-known places, (lat, lon).
PLACES = {
    "Yankee Stadium": (40.8296, -73.9262),
    "Times Square": (40.7580, -73.9855),
    "Prospect Park": (40.6602, -73.9690),
    "Flushing Meadows": (40.7400, -73.8407),
    "Fresh Kills": (40.5800, -74.1870),
    "Newark": (40.7357, -74.1724),
}
BOROUGHS = ["Bronx", "Manhattan", "Brooklyn", "Queens", "Staten Island", None]


def event_at(name):
    latitude, longitude = PLACES[name]
    return {"lat": latitude, "lon": longitude}


@pytest.mark.parametrize(("place", "borough"), [*zip(PLACES, BOROUGHS, strict=True)])
def test_places_are_in_their_boroughs(place, borough):
    event = event_at(place)
    assert spatial.region_at(event) == ([borough] if borough else [])
    for name in BOROUGHS[:-1]:
        assert spatial.loc_in(event, name) is (name == borough)
        distance = spatial.distance_from(event, name)
        assert (distance == 0) is (name == borough)
        assert spatial.loc_within(event, name, distance) is True
        if distance:
            assert spatial.loc_within(event, name, distance - 0.001) is False


def test_distances_on_the_map():
    # Times Square to the nearest shore of Queens, across the East River.
    assert spatial.distance_from(event_at("Times Square"), "Queens") == pytest.approx(2600, abs=300)
    assert spatial.distance_from(event_at("Newark"), "Staten Island") == pytest.approx(
        9700, rel=0.1
    )


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    """A square of one degree at the equator, one with a hole, and a point."""
    path = tmp_path_factory.mktemp("geo") / "shapes.geojson"
    path.write_text(
        """{"type": "FeatureCollection", "features": [
        {"type": "Feature", "properties": {"id": "square"}, "geometry":
         {"type": "Polygon", "coordinates": [[[0,0],[1,0],[1,1],[0,1],[0,0]]]}},
        {"type": "Feature", "properties": {"id": "ring"}, "geometry":
         {"type": "Polygon", "coordinates": [[[2,0],[5,0],[5,1],[2,1],[2,0]],
                                             [[3,0.25],[4,0.25],[4,0.75],[3,0.75],[3,0.25]]]}},
        {"type": "Feature", "properties": {"id": "statue"}, "geometry":
         {"type": "Point", "coordinates": [0.5, 0.5]}}]}""",
        encoding="utf-8",
    )
    return Regions.read(path, name="id")


@pytest.mark.parametrize(
    ("lon", "lat", "inside"),
    [(0.5, 0.5, True), (1.0, 0.5, True), (1.0, 1.0, True), (1.00001, 0.5, False), (0, 0, True)],
)
def test_borders_count(shapes, lon, lat, inside):
    assert shapes.loc_in({"lon": lon, "lat": lat}, "square") is inside


def test_holes_are_outside(shapes):
    assert shapes.loc_in({"lon": 3.5, "lat": 0.5}, "ring") is False
    distance = shapes.distance_from({"lon": 3.5, "lat": 0.5}, "ring")
    assert distance == pytest.approx(0.25 * METRES_PER_DEGREE, rel=0.001)


def test_distance_to_a_point_is_that_on_the_sphere(shapes):
    event = {"lon": 3.0, "lat": 4.0}
    assert shapes.distance_from(event, "statue") == pytest.approx(haversine(3.0, 4.0, 0.5, 0.5))


def test_one_degree_of_a_great_circle():
    assert haversine(0, 0, 0, 1) == pytest.approx(METRES_PER_DEGREE)
    assert haversine(0, 0, 180, 0) == pytest.approx(180 * METRES_PER_DEGREE)
    assert haversine(10, 60, 11, 60) == pytest.approx(METRES_PER_DEGREE / 2, rel=0.001)


@pytest.mark.parametrize(
    "event",
    [{}, {"lat": 40.0}, {"lat": None, "lon": 1.0}, {"lat": 91.0, "lon": 0.0},
     {"lat": float("nan"), "lon": 0.0}, {"lat": 0.0, "lon": 180.5}],
)  # fmt: skip
def test_without_a_place_there_is_no_answer(event):
    assert spatial.loc_in(event, "Bronx") is None
    assert spatial.loc_within(event, "Bronx", 10) is None
    assert spatial.distance_from(event, "Bronx") is None
    assert spatial.region_at(event) is None


def test_batches_answer_as_single_events_do(seed):
    rng = np.random.default_rng(seed)
    lat, lon = rng.uniform(40.5, 40.9, 60), rng.uniform(-74.2, -73.7, 60)
    rows = [{"lat": a, "lon": b} for a, b in zip(lat.tolist(), lon.tolist(), strict=True)]
    rows += [{"lat": None, "lon": -74.0}, {"lat": 95.0, "lon": -74.0}]
    table = pa.Table.from_pylist(rows)
    regions = spatial.default_regions()
    for name in ("Bronx", "Queens"):
        inside = regions.loc_in_batch(table, name).to_pylist()
        assert inside == [regions.loc_in(row, name) for row in rows]
        near = regions.loc_within_batch(table, name, 5_000).to_pylist()
        assert near == [regions.loc_within(row, name, 5_000) for row in rows]
        away = regions.distance_from_batch(table, name).to_pylist()
        assert away == pytest.approx([regions.distance_from(row, name) for row in rows])


def test_unknown_region_is_named():
    with pytest.raises(InputError, match=r'no region "Brooklin".*allowed: Bronx') as raised:
        spatial.loc_in(event_at("Newark"), "Brooklin")
    assert "Brooklyn" in raised.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a GeoJSON file"),
        ("[]", "not a GeoJSON file"),
        ('{"type": "Point"}', "no 'features'"),
        ('{"features": [{"properties": {}, "geometry": null}]}', "no 'name'"),
        (
            '{"features": [{"properties": {"name": "a"}, "geometry": {"type": "Blob"}}]}',
            "not a Geo",
        ),
    ],
)
def test_other_files_are_refused(text, message, tmp_path):
    path = tmp_path / "regions.geojson"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Regions.read(path)


def test_missing_file_and_equal_names_are_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        Regions.read(tmp_path / "none.geojson")
    regions = spatial.default_regions()
    with pytest.raises(InputError, match="same name: a"):
        Regions(["a", "a"], list(regions._geometries[:2]))


def test_variable_chooses_the_regions(tmp_path, monkeypatch):
    path = tmp_path / "one.geojson"
    path.write_text(
        '{"features": [{"properties": {"name": "here"},'
        ' "geometry": {"type": "Point", "coordinates": [1, 2]}}]}',
        encoding="utf-8",
    )
    monkeypatch.setenv(spatial.VARIABLE, str(path))
    spatial.default_regions.cache_clear()
    try:
        assert spatial.loc_in({"lat": 2.0, "lon": 1.0}, "here") is True
    finally:
        spatial.default_regions.cache_clear()

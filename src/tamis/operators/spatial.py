"""Operators over the regions of a GeoJSON file.

    loc_in('Bronx')                 the event's position is in the region, or on its border
    loc_within('Bronx', 500)        … or at most 500 m away from it
    distance_from('Bronx', ?m)      how many metres away it is; 0 inside
    region_at(?name)                the regions that contain it

An event has its position in `lat` and `lon`, in degrees (WGS 84); without them the answer is None.
The regions are those of the file named by the environment variable TAMIS_REGIONS, by default the
five boroughs of New York; `Regions` takes any others.
"""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from tamis.errors import InputError, MissingDependencyError, suggest
from tamis.operators.registry import Registry, operator

try:
    import shapely
except ImportError as error:
    raise MissingDependencyError(
        "spatial operators need the package shapely", hint="pip install 'tamis[spatial]'"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

BOROUGHS: Final = Path(__file__).with_name("regions") / "nyc_boroughs.geojson"
VARIABLE: Final = "TAMIS_REGIONS"
PLACE: Final = ("lat double", "lon double")
# Registered only when this module is imported, since other modules may want the same names.
OWN: Final = Registry()
EARTH_RADIUS: Final = 6_371_008.8  # metres, mean
METRES_PER_DEGREE: Final = math.pi * EARTH_RADIUS / 180


class Regions:
    """Named geometries, prepared for many queries.

    They are projected to a plane, in metres, that is true to scale at the latitude of their centre.
    The nearest point of a region is found in the plane, and the distance to it is computed on the
    sphere: only the choice of the nearest point can be wrong, by less than 1% of the distance
    across a city.
    """

    def __init__(self, names: Sequence[str], geometries: Sequence[Any]) -> None:
        """Geometries in degrees, longitude first."""
        if twice := {name for name in names if list(names).count(name) > 1}:
            raise InputError(f"regions have the same name: {', '.join(sorted(twice))}")
        self.names = list(names)
        degrees = np.asarray(geometries, dtype=object)
        bounds = shapely.total_bounds(degrees)
        self._scale = METRES_PER_DEGREE * math.cos(math.radians((bounds[1] + bounds[3]) / 2))
        factors = (self._scale, METRES_PER_DEGREE)
        self._geometries = shapely.transform(degrees, lambda points: points * factors)
        shapely.prepare(self._geometries)
        self._by_name = dict(zip(self.names, self._geometries, strict=True))
        self._tree = shapely.STRtree(self._geometries)

    @classmethod
    def read(cls, path: str | os.PathLike[str], name: str = "name") -> Regions:
        """Read the features of a GeoJSON file; `name` is the property that holds their names."""
        try:
            features = orjson.loads(Path(path).read_bytes())["features"]
            names = [feature["properties"][name] for feature in features]
            texts = [orjson.dumps(feature["geometry"]) for feature in features]
            return cls(names, shapely.from_geojson(texts))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        except KeyError as error:
            hint = "features need a geometry and properties with a name; Regions.read(path, name=…)"
            raise InputError(f"{path}: the GeoJSON has no {error}", hint=hint) from error
        except (ValueError, TypeError, shapely.errors.GEOSException) as error:
            raise InputError(f"{path}: not a GeoJSON file of features: {error}") from error

    # ── one event ──────────────────────────────────────────────────────────────────────────

    def loc_in(self, event: Mapping[str, Any], region: str) -> bool | None:
        """Whether the event is in the region or on its border."""
        geometry = self.expect(region)
        place = self._place_of(event)
        return None if place is None else bool(shapely.intersects_xy(geometry, *place))

    def loc_within(self, event: Mapping[str, Any], region: str, metres: float) -> bool | None:
        """Whether the event is in the region or at most that many metres away."""
        distance = self.distance_from(event, region)
        return None if distance is None else distance <= metres

    def distance_from(self, event: Mapping[str, Any], region: str) -> float | None:
        """Distance to the nearest point of the region in metres; 0 inside."""
        geometry = self.expect(region)
        place = self._place_of(event)
        return None if place is None else float(self._distances(geometry, *np.array([place]).T)[0])

    def region_at(self, event: Mapping[str, Any]) -> list[str] | None:
        """The names of the regions that contain the event."""
        place = self._place_of(event)
        if place is None:
            return None
        found = self._tree.query(shapely.Point(*place), predicate="intersects")
        return [self.names[at] for at in sorted(found)]

    # ── many events ────────────────────────────────────────────────────────────────────────

    def loc_in_batch(self, events: pa.Table, region: str) -> pa.Array:
        """`loc_in` of each row."""
        geometry = self.expect(region)
        x, y, is_known = self._places_of(events)
        return _as_array(shapely.intersects_xy(geometry, x, y), is_known)

    def loc_within_batch(self, events: pa.Table, region: str, metres: float) -> pa.Array:
        """`loc_within` of each row."""
        geometry = self.expect(region)
        x, y, is_known = self._places_of(events)
        return _as_array(self._distances(geometry, x, y) <= metres, is_known)

    def distance_from_batch(self, events: pa.Table, region: str) -> pa.Array:
        """`distance_from` of each row."""
        geometry = self.expect(region)
        x, y, is_known = self._places_of(events)
        return _as_array(self._distances(geometry, x, y), is_known)

    # ── places ─────────────────────────────────────────────────────────────────────────────

    def expect(self, region: str) -> Any:
        """The geometry of a region; the error lists the known regions."""
        if (geometry := self._by_name.get(region)) is not None:
            return geometry
        guess = suggest(region, self.names)
        hint = f'did you mean "{guess}"?' if guess else None
        shown = ", ".join(self.names[:8]) + (", …" if len(self.names) > 8 else "")
        raise InputError(f'there is no region "{region}"; allowed: {shown}', hint=hint)

    def _place_of(self, event: Mapping[str, Any]) -> tuple[float, float] | None:
        """The event's position in the plane, or None."""
        latitude, longitude = event.get("lat"), event.get("lon")
        if latitude is None or longitude is None or not _is_on_earth(latitude, longitude):
            return None
        return longitude * self._scale, latitude * METRES_PER_DEGREE

    def _places_of(self, events: pa.Table) -> tuple[Any, Any, Any]:
        """x and y of each row, and whether they are known."""
        latitude, longitude = (
            events.column(name).cast("float64").to_numpy() for name in ("lat", "lon")
        )
        is_known = _is_on_earth(latitude, longitude)
        longitude, latitude = (np.where(is_known, each, 0.0) for each in (longitude, latitude))
        return longitude * self._scale, latitude * METRES_PER_DEGREE, is_known

    def _distances(self, geometry: Any, x: Any, y: Any) -> Any:
        """Distance on the sphere, in metres, from each position to the nearest point of the
        region.
        """
        lines = shapely.shortest_line(geometry, shapely.points(x, y))
        ends = shapely.get_coordinates(lines).reshape(-1, 4) / np.array(
            [self._scale, METRES_PER_DEGREE] * 2
        )
        return haversine(*ends.T)


def haversine(lon_1: Any, lat_1: Any, lon_2: Any, lat_2: Any) -> Any:
    """Distance on the sphere between positions in degrees, in metres."""
    lon_1, lat_1, lon_2, lat_2 = (np.radians(each) for each in (lon_1, lat_1, lon_2, lat_2))
    chord = (
        np.sin((lat_2 - lat_1) / 2) ** 2
        + np.cos(lat_1) * np.cos(lat_2) * np.sin((lon_2 - lon_1) / 2) ** 2
    )
    return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(chord))


def _is_on_earth(latitude: Any, longitude: Any) -> Any:
    """Whether these are valid degrees; NaN is not."""
    return (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180)


def _as_array(values: Any, is_known: Any) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, mask=~is_known)


@cache
def default_regions() -> Regions:
    """The regions of the file named by TAMIS_REGIONS, or the boroughs of New York."""
    return Regions.read(os.environ.get(VARIABLE) or BOROUGHS)


def expect_region(region: str, metres: float = 0.0) -> None:
    """Raise an error for an unknown region or an invalid distance."""
    default_regions().expect(region)
    if not metres >= 0:
        raise InputError(f"a distance of {metres} metres; allowed: 0 or more")


@operator("loc_in(string)", reads=PLACE, check=expect_region, registry=OWN)
def loc_in(event: Mapping[str, Any], region: str) -> bool | None:
    """Whether the event is in one of the default regions."""
    return default_regions().loc_in(event, region)


@operator("loc_within(string, double)", reads=PLACE, check=expect_region, registry=OWN)
def loc_within(event: Mapping[str, Any], region: str, metres: float) -> bool | None:
    """Whether the event is in one of the default regions, or at most that many metres away."""
    return default_regions().loc_within(event, region, metres)


@operator("distance_from(string, ?double)", reads=PLACE, check=expect_region, registry=OWN)
def distance_from(event: Mapping[str, Any], region: str) -> float | None:
    """Distance from the event to one of the default regions, in metres."""
    return default_regions().distance_from(event, region)


@operator("region_at(?string)", reads=PLACE, registry=OWN)
def region_at(event: Mapping[str, Any]) -> list[str] | None:
    """The default regions that contain the event."""
    return default_regions().region_at(event)

"""JSON events of about 540 bytes, like the lots of a city: a polygon that no rule asks about, and
nine short properties; and rules over the properties.
"""

from __future__ import annotations

import json
import random
from typing import Any, Final

N_BLOCKS: Final = 6_000
N_LOTS: Final = 100
N_POINTS: Final = 5  # of a polygon
_BEGINNINGS: Final = ("CEDAR", "CASTRO", "FELL", "GEARY", "HAIGHT", "LAKE", "MARKET", "NOE", "PINE")
_ENDINGS: Final = ("", " HILL", " PARK", "WOOD", "VIEW", "DALE", "FIELD", "SIDE")
STREETS: Final = tuple(one + other for one in _BEGINNINGS for other in _ENDINGS)
STREET_TYPES: Final = ("ST", "AVE", "BLVD", "CT", "DR", "LN", "PL", "WAY", None)
SCHEMA: Final = ", ".join(
    f"properties.{name} STRING"
    for name in (
        *("MAPBLKLOT", "BLKLOT", "BLOCK_NUM", "LOT_NUM", "FROM_ST", "TO_ST"),
        *("STREET", "ST_TYPE", "ODD_EVEN"),
    )
)


def draw_event(rng: random.Random) -> dict[str, Any]:
    """One event."""
    block, lot = f"{rng.randrange(N_BLOCKS):04d}", f"{rng.randrange(N_LOTS):03d}"
    number = rng.randrange(1, 3000)
    west, south = rng.uniform(-122.5, -122.4), rng.uniform(37.7, 37.8)
    corners = [
        [west + rng.uniform(0, 0.001), south + rng.uniform(0, 0.001), 0.0] for _ in range(N_POINTS)
    ]
    properties = {
        "MAPBLKLOT": block + lot,
        "BLKLOT": block + lot,
        "BLOCK_NUM": block,
        "LOT_NUM": lot,
        "FROM_ST": str(number),
        "TO_ST": str(number + rng.randrange(10)),
        "STREET": rng.choice(STREETS),
        "ST_TYPE": rng.choice(STREET_TYPES),
        "ODD_EVEN": "O" if number % 2 else "E",
    }
    geometry = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def write_events(n_events: int, seed: int = 1) -> bytes:
    """Events as lines of JSON."""
    rng = random.Random(seed)
    return b"".join(json.dumps(draw_event(rng)).encode() + b"\n" for _ in range(n_events))


def draw_rule(rng: random.Random) -> str:
    """One rule, of equality, IN, a prefix or NOT; an event satisfies about one in 8,000."""
    street, other = (f"'{street}'" for street in rng.sample(STREETS, 2))
    block = f"'{rng.randrange(N_BLOCKS):04d}'"
    lots = ", ".join(f"'{lot:03d}'" for lot in rng.sample(range(N_LOTS), 4))
    kinds = ", ".join(f"'{kind}'" for kind in rng.sample(STREET_TYPES[:-1], 3))
    match rng.randrange(4):
        case 0:
            return f"properties.BLOCK_NUM = {block} AND properties.ODD_EVEN = 'E'"
        case 1:
            return (
                f"properties.STREET IN ({street}, {other}) AND properties.LOT_NUM IN ({lots}) "
                f"AND properties.ST_TYPE IN ({kinds})"
            )
        case 2:
            prefix = f"'{rng.randrange(N_BLOCKS):04d}{rng.randrange(10)}%'"
            return f"properties.BLKLOT LIKE {prefix} AND properties.STREET <> {street}"
        case _:
            return f"properties.BLOCK_NUM = {block} AND NOT properties.ST_TYPE IN ({kinds})"


def draw_rules(n_rules: int, seed: int = 2) -> dict[str, str]:
    """Rules by id."""
    rng = random.Random(seed)
    return {f"r{number}": draw_rule(rng) for number in range(n_rules)}

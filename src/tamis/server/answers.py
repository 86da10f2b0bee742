"""Answers in JSON that hold what clients sent: any text, any number."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson
from starlette.responses import Response

JSON: Final = "application/json"


def spell_json(value: Any) -> bytes:
    """JSON values as text; also lone surrogates and integers of any size, which are valid JSON."""
    try:
        return orjson.dumps(value, option=orjson.OPT_UTC_Z)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def answer_json(value: Any, status: int = 200) -> Response:
    """An answer with JSON values."""
    return Response(spell_json(value), status, media_type=JSON)

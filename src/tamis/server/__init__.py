"""HTTP for a match server: parse, authorise, call the broker.

    tamis serve

`create_app` makes the application, `serve` runs it.
"""

from tamis.errors import MissingDependencyError

try:
    import fastapi  # noqa: F401
    import sqlalchemy  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as _error:
    raise MissingDependencyError(
        f"a match server needs the package {_error.name}", hint="pip install 'tamis[server]'"
    ) from None

from tamis.server.app import create_app
from tamis.server.running import serve
from tamis.server.settings import Settings
from tamis.server.settings_reading import read_settings

__all__ = ["Settings", "create_app", "read_settings", "serve"]

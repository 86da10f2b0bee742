"""Archives of tests are in memory, and nothing happens in the background."""

from tests.archive.conftest import by_hand, folder

__all__ = ["by_hand", "folder"]

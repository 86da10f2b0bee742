"""What the process that merges and the one that it works for agree on."""

from __future__ import annotations

from typing import Final

LARGE: Final = 50_000  # subscriptions: after a merge of so many, the process ends and starts anew

"""Irmak's algorithms as in the paper; each step can be switched on or off.

| name | section | what it adds |
|---|---|---|
| `primitive` | 3.2 | inverted lists, a hash table of accumulators |
| `split` | 3.3 | terms by ascending frequency; accumulators only for a query's least frequent one |
| `bloom` | 3.3 | a Bloom filter of one hash function in front of the accumulators |
| `partitions` | 3.3 | queries in parts whose accumulators fit in the cache |
| `superqueries` | 4.2 | queries with one least frequent term share a mask of 32 to 128 bits |
"""

from tamis.lab.irmak.clustering import CLUSTERINGS
from tamis.lab.irmak.matcher import IrmakIndex, IrmakOptions

__all__ = ["CLUSTERINGS", "IrmakIndex", "IrmakOptions"]

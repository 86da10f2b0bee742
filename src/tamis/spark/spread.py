"""How the work is distributed: replicate the index, split it, or both (Irmak §1.3).

If the index is replicated, every task opens all parts and gets a share of the events: best while
the parts fit into a worker's memory. If it is split, the parts are divided into groups and every
group gets all events; the events' partitions remain, so the number of tasks is groups times
partitions.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tamis.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tamis.versions.manifest import Part
    from tamis.versions.part_set import PartSet

REPLICATE: Final = "replicate"
SPLIT: Final = "split"
PRODUCT: Final = "product"
AUTO: Final = "auto"
SPREADS: Final = (AUTO, REPLICATE, SPLIT, PRODUCT)
BYTES_PER_NODE: Final = 4 * 64  # upper bound of the batch kernel's bytes per node
MEMORY: Final = "spark.tamis.memory"  # bytes one Python worker may use for an index


@dataclass(frozen=True, slots=True)
class Spread:
    """The groups of parts; `is_whole` gives each group all events in one task."""

    groups: tuple[PartSet, ...]
    is_whole: bool = False


def choose_spread(spark: SparkSession, parts: PartSet, how: str, n_groups: int | None) -> Spread:
    """The requested groups, or as few as fit into a worker's memory."""
    if how not in SPREADS:
        raise InputError(f'unknown spread "{how}"; allowed: {", ".join(SPREADS)}')
    if n_groups is not None and not n_groups >= 1:
        raise InputError(f"{n_groups} groups of parts; at least 1 is allowed")
    if how == REPLICATE or (how == AUTO and n_groups is None and len(parts.parts) == 1):
        _expect_fitting(spark, parts, how)
        return Spread((parts,))
    if how == AUTO and n_groups is None:
        n_groups = _fewest_groups(spark, parts)
    n_groups = min(len(parts.parts), n_groups or len(parts.parts))
    dealt = deal(parts.parts, n_groups)
    return Spread(tuple(parts.only(group) for group in dealt), is_whole=how == SPLIT)


def deal(parts: tuple[Part, ...], n_groups: int) -> list[list[Part]]:
    """The parts in groups of about the same memory, largest first."""
    groups: list[list[Part]] = [[] for _ in range(n_groups)]
    for part in sorted(parts, key=need, reverse=True):
        min(groups, key=lambda group: sum(map(need, group))).append(part)
    return [group for group in groups if group]


def need(part: Part) -> int:
    """Bytes of memory that matching with the part needs: its pages and the kernel's masks."""
    return part.n_bytes + BYTES_PER_NODE * part.n_nodes


def _fewest_groups(spark: SparkSession, parts: PartSet) -> int:
    memory = worker_memory(spark)
    for n_groups in range(1, len(parts.parts) + 1):
        groups = deal(parts.parts, n_groups)
        if max(sum(map(need, group)) for group in groups) <= memory:
            return n_groups
    largest = max(parts.parts, key=need)
    raise InputError(
        f"part {largest.id} needs {need(largest):,} bytes and a worker has {memory:,}",
        hint=f"build with smaller parts, or set {MEMORY} if a worker has more",
    )


def _expect_fitting(spark: SparkSession, parts: PartSet, how: str) -> None:
    needed, memory = sum(map(need, parts.parts)), worker_memory(spark)
    if needed > memory:
        raise InputError(
            f"the index needs {needed:,} bytes and a worker has {memory:,}",
            hint=f"build with more parts and spread them, or set {MEMORY} if a worker has more"
            if how != REPLICATE or len(parts.parts) == 1
            else "use spread auto or product, which give a worker fewer parts",
        )


def worker_memory(spark: SparkSession) -> int:
    """Bytes one worker may use for an index: as configured, else a fair share of this machine."""
    given = spark.conf.get(MEMORY, None)
    if given is not None:
        if not given.isdecimal():
            raise InputError(f'{MEMORY} is "{given}"; a number of bytes is allowed')
        return int(given)
    # All workers share the index's pages but not their masks; half is left to the JVM.
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(physical // (2 * (os.cpu_count() or 1)))

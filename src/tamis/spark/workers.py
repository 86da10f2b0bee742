"""Sends work to Spark's Python workers, which may lack required packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark import cloudpickle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

    Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

LACKING: Final = "Spark's Python workers have no module"
WHAT_TO_DO: Final = (
    "install tamis for the Python of the workers (spark.pyspark.python), or send an environment "
    "along (spark.archives); docs/spark.md shows how"
)


def run_on_workers(frame: DataFrame, task: Task, schema: Any) -> DataFrame:
    """The frame's batches, mapped by the task on workers."""
    return frame.mapInArrow(_explained(task), schema)


def _explained(task: Task) -> Task:
    """The task wrapped in a function that needs only Python, to report what a worker lacks.

    A local function is sent as code; the task is sent by name, and only this function notices if it
    cannot be found. Spark's own message is at the end of a long trace and gives no remedy.
    """
    content: bytes = cloudpickle.dumps(task)  # type: ignore[no-untyped-call]
    lacking, what_to_do = LACKING, WHAT_TO_DO

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle

        try:
            own = pickle.loads(content)
        except ModuleNotFoundError as error:
            message = f"{lacking} '{error.name}'; {what_to_do}"
            raise ModuleNotFoundError(message, name=error.name) from None
        yield from own(batches)

    return run

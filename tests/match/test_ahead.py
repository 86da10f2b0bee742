"""Results come in order, errors in their place, and only a few items are taken ahead."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

import pytest

from tamis.match.ahead import map_ahead
from tests.waiting import HANG_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

THREADS = pytest.mark.parametrize("threads", [1, 2, 5])


@THREADS
@pytest.mark.parametrize("n_items", [0, 1, 7, 100])
def test_order(threads: int, n_items: int) -> None:
    assert list(map_ahead(str, range(n_items), threads)) == list(map(str, range(n_items)))


def test_later_items_do_not_overtake() -> None:
    second_is_done = Event()

    def run(item: int) -> int:
        if item == 0:
            assert second_is_done.wait(HANG_SECONDS)
        if item == 1:
            second_is_done.set()
        return item

    assert list(map_ahead(run, range(10), 2)) == list(range(10))


@THREADS
def test_the_error_of_the_source_comes_after_the_results_before_it(threads: int) -> None:
    def source() -> Iterator[int]:
        yield from range(3)
        raise ValueError("cut off")

    found = []
    with pytest.raises(ValueError, match="cut off"):
        found.extend(map_ahead(str, iter(source()), threads))
    # `extend` appends what it gets before the error.
    assert found == ["0", "1", "2"]


@THREADS
def test_the_error_of_an_item_comes_in_its_place(threads: int) -> None:
    results = map_ahead(lambda item: 6 // item, [1, 2, 0, 3], threads)
    assert [next(results), next(results)] == [6, 3]
    with pytest.raises(ZeroDivisionError):
        next(results)


@THREADS
def test_a_bounded_number_of_items_is_taken(threads: int) -> None:
    taken: list[int] = []

    def source() -> Iterator[int]:
        for item in range(1000):
            taken.append(item)
            yield item

    results = map_ahead(str, source(), threads)
    for n_before in range(50):
        next(results)
        assert len(taken) <= n_before + 2 * threads
    results.close()
    assert len(taken) < 100

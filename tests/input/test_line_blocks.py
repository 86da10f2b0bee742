"""Lines found in blocks are the lines that Python finds one by one."""

from __future__ import annotations

import io
import random

import pytest

from tamis.events.json_source import split_lines
from tamis.input import line_blocks
from tamis.input.json_lines import _filled_lines
from tamis.input.line_blocks import read_lines
from tests.effort import SEED, examples

PIECES = [
    b"\n",
    b"\r\n",
    b"\n\n",
    b" ",
    b"\t",
    b"\v\f",
    b"\r",
    b"x",
    b"{}",
    b"a longer text \xc3\xa9",
]


class Trickle(io.RawIOBase):
    """A stream of which each read returns a few bytes."""

    def __init__(self, data: bytes, rng: random.Random) -> None:
        self.data = data
        self.rng = rng

    def read1(self, size: int) -> bytes:
        n_bytes = self.rng.randrange(1, min(size, 20))
        taken, self.data = self.data[:n_bytes], self.data[n_bytes:]
        return taken


def draw(rng: random.Random) -> bytes:
    mark = b"\xef\xbb\xbf" if rng.random() < 0.2 else b""
    return mark + b"".join(rng.choice(PIECES) for _ in range(rng.randrange(60)))


@pytest.mark.parametrize("n_rows", [1, 2, 7, 1000])
def test_finds_the_same_lines(n_rows):
    rng = random.Random(SEED)
    for _ in range(examples(300)):
        data = draw(rng)
        expected = list(_filled_lines(io.BytesIO(data)))
        batches = list(read_lines(Trickle(data, rng), n_rows))
        found = [
            (int(number), text)
            for batch in batches
            for number, text in zip(batch.numbers, batch.texts, strict=True)
        ]
        assert found == expected, data
        assert all(len(batch.texts) == n_rows for batch in batches[:-1]), data
        assert all(0 < len(batch.texts) <= n_rows for batch in batches), data


def test_heavy_lines_make_smaller_batches(monkeypatch):
    monkeypatch.setattr("tamis.input.batches.MOST_BYTES", 100)
    monkeypatch.setattr(line_blocks, "BLOCK_BYTES", 16)
    data = b"".join(b"%d" % at * size + b"\n" for at, size in enumerate([300, 1, 1, 90, 400, 5]))
    batches = list(read_lines(io.BytesIO(data), 1000))
    assert [text for batch in batches for text in batch.texts] == data.split()
    assert len(batches) > 2
    assert [number for batch in batches for number in batch.numbers] == [1, 2, 3, 4, 5, 6]


def test_lines_of_a_whole_text():
    found = split_lines(b'\n {"a": 1} \r\n\n{"a": 2}', 22)
    assert list(found.texts) == [b'{"a": 1}', b'{"a": 2}']
    assert found.numbers.tolist() == [2, 4]
    assert found.texts[0] == b'{"a": 1}'
    assert list(found.texts[1:]) == [b'{"a": 2}']

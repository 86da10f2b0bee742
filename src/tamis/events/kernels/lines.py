"""Finds the lines of a text."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.kernels.words import load_word, trailing_zeros

_LINE_FEED = 10
_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
_LINE_FEEDS = np.uint64(_LINE_FEED) * _ONES


@kernel(inline="always")
def is_blank(byte):
    """Whether `bytes.strip` removes the byte."""
    return byte == 32 or 9 <= byte <= 13


@kernel
def count_line_feeds(data):
    """The number of line feeds; `bytes.count` takes several times as long."""
    n_feeds = np.int64(0)
    for byte in data:
        n_feeds += byte == _LINE_FEED
    return n_feeds


@kernel
def find_line_feed(data, at, end):
    """The position of the next line feed, or `end`."""
    while at + 8 <= len(data):
        differences = load_word(data, at) ^ _LINE_FEEDS
        found = (differences - _ONES) & ~differences & _HIGHS
        if found != 0:
            return min(end, at + (trailing_zeros(found) >> 3))
        at += 8
        if at >= end:
            return end
    while at < end and data[at] != _LINE_FEED:
        at += 1
    return min(at, end)


@kernel
def find_lines(
    data,  # uint8[:]
    begin,
    end,
    starts,  # int64[n_lines], output, with room for all lines
    ends,  # int64[n_lines], output
    numbers,  # int64[n_lines], output: from 0
):
    """Write the bounds of all lines between two positions that are not blank, without surrounding
    blanks; return how many there are.
    """
    n_found, number = 0, 0
    while begin < end:
        feed = find_line_feed(data, begin, end)
        start, stop = begin, feed
        while start < stop and is_blank(data[start]):
            start += 1
        while start < stop and is_blank(data[stop - 1]):
            stop -= 1
        if start < stop:
            starts[n_found], ends[n_found], numbers[n_found] = start, stop, number
            n_found += 1
        begin = feed + 1
        number += 1
    return n_found

"""Finds all strings of JSON events that are values, and not names."""

from __future__ import annotations

from tamis.events.json_source import NO_EVENT
from tamis.events.kernels.json_scan import TOKEN_ESCAPED, TOKEN_TEXT, add_span
from tamis.events.kernels.json_tokens import COLON, QUOTE, scan_string, skip_blanks
from tamis.kernels.compiled import kernel


@kernel
def scan_strings(
    data,  # uint8[:]
    starts,  # int64[n_rows], or NO_EVENT
    ends,  # int64[n_rows]
    is_odd,  # bool[n_rows]: rows that `scan_rows` did not accept, which are passed over
    spans,  # Spans, output, with room for a span per two bytes
):
    """Write the strings of all rows; return how many there are."""
    n_found = 0
    for row in range(len(starts)):
        if starts[row] == NO_EVENT or is_odd[row]:
            continue
        at, end = starts[row], ends[row]
        while at < end:
            if data[at] != QUOTE:
                at += 1
                continue
            begin = at + 1
            stop, is_escaped = scan_string(data, begin, end)
            at = skip_blanks(data, stop + 1, end)
            # The row is an object, so a string is never its last character.
            if data[at] != COLON:
                kind = TOKEN_ESCAPED if is_escaped else TOKEN_TEXT
                add_span(spans, n_found, row, 0, kind, begin, stop)
                n_found += 1
    return n_found

"""Reads numbers, dates and timestamps from text.

Each kernel writes GOOD if it is sure of the value, and ASK if it is not: then the plain reader in
`spelled` decides. So a kernel may support few forms to be fast, and is never wrong.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel

ASK = 0
GOOD = 1

_MINUS, _PLUS, _POINT, _COLON, _ZERO, _NINE = 45, 43, 46, 58, 48, 57
_BIG_T, _BIG_Z, _SPACE = 84, 90, 32
_SMALL_E, _BIG_E = 101, 69
EXACT_DOUBLES = 2**53  # integers up to this are exact doubles
SHORT_NUMBERS = 10**15  # decimals of at most this many digits are what their doubles print as
_SAFE_DIGITS = 18  # a number of at most this many digits fits in 64 bits
_DAY_MICROSECONDS = 86_400_000_000
_FIRST_INSTANT = -62_135_596_800_000_000  # 0001-01-01 00:00:00
_LAST_INSTANT = 253_402_300_799_999_999  # 9999-12-31 23:59:59.999999
# Powers of ten that are exact doubles.
_POWERS = np.array([10.0**exponent for exponent in range(23)])


@kernel(_nrt=True, inline="always")
def is_digit(byte):
    """Whether the byte is one of 0 to 9."""
    return _ZERO <= byte <= _NINE


@kernel(_nrt=True, inline="always")
def digit(byte):
    """The value of the digit."""
    return np.int64(byte) - _ZERO


@kernel(_nrt=True)
def read_integers(offsets, data, values, statuses):
    """Integers with an optional sign, of at most 18 digits."""
    for at in range(len(values)):
        begin, end = offsets[at], offsets[at + 1]
        is_negative = begin < end and data[begin] == _MINUS
        if begin < end and (is_negative or data[begin] == _PLUS):
            begin += 1
        statuses[at] = GOOD if 0 < end - begin <= _SAFE_DIGITS else ASK
        number = 0
        while begin < end and statuses[at] == GOOD:
            if is_digit(data[begin]):
                number = 10 * number + digit(data[begin])
            else:
                statuses[at] = ASK
            begin += 1
        values[at] = -number if is_negative else number


@kernel(_nrt=True)
def read_decimal_parts(data, begin, end):
    """(status, digits as an integer, number of digits after the point, end position).

    Reads `[sign] digits [. digits]` of at most 18 digits; the caller reads the rest.
    """
    is_negative = begin < end and data[begin] == _MINUS
    if begin < end and (is_negative or data[begin] == _PLUS):
        begin += 1
    number, n_digits, n_after = 0, 0, 0
    has_point = False
    while begin < end:
        byte = data[begin]
        if is_digit(byte):
            if n_digits == _SAFE_DIGITS:
                return ASK, 0, 0, begin
            number = 10 * number + digit(byte)
            n_digits += 1
            n_after += has_point
        elif byte == _POINT and not has_point:
            has_point = True
        else:
            break
        begin += 1
    status = GOOD if n_digits > 0 else ASK
    return status, -number if is_negative else number, n_after, begin


@kernel(_nrt=True)
def read_exponent(data, begin, end):
    """(status, exponent, end position) of a small integer with an optional sign."""
    is_negative = begin < end and data[begin] == _MINUS
    if begin < end and (is_negative or data[begin] == _PLUS):
        begin += 1
    if not 0 < end - begin <= 3:
        return ASK, 0, begin
    exponent = 0
    while begin < end:
        if not is_digit(data[begin]):
            return ASK, 0, begin
        exponent = 10 * exponent + digit(data[begin])
        begin += 1
    return GOOD, -exponent if is_negative else exponent, begin


@kernel(_nrt=True)
def read_floats(offsets, data, most, values, statuses):
    """Numbers whose digits and power of ten are both exact doubles: one operation rounds correctly.

    As an integer, the digits are at most `most`.
    """
    for at in range(len(values)):
        end = offsets[at + 1]
        status, number, n_after, here = read_decimal_parts(data, offsets[at], end)
        exponent = 0
        if status == GOOD and here < end and (data[here] == _SMALL_E or data[here] == _BIG_E):
            status, exponent, here = read_exponent(data, here + 1, end)
        exponent -= n_after
        is_exact = abs(number) <= most and abs(exponent) < len(_POWERS)
        if status == GOOD and here == end and is_exact:
            statuses[at] = GOOD
            if exponent >= 0:
                values[at] = np.float64(number) * _POWERS[exponent]
            else:
                values[at] = np.float64(number) / _POWERS[-exponent]
        else:
            statuses[at] = ASK
            values[at] = 0.0


@kernel(_nrt=True)
def power_of_ten(exponent):
    """10 ** exponent for 0 to 18."""
    power = np.int64(1)
    for _ in range(exponent):
        power *= 10
    return power


@kernel(_nrt=True)
def write_product(left, right, words):
    """Write the product of two integers, the second not negative, as low and high word."""
    one, other = np.uint64(abs(left)), np.uint64(right)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    low = (one & mask) * (other & mask)
    middle = (one >> half) * (other & mask) + (low >> half)
    cross = (one & mask) * (other >> half) + (middle & mask)
    high = (one >> half) * (other >> half) + (middle >> half) + (cross >> half)
    low = (cross << half) | (low & mask)
    if left < 0:  # two's complement
        high = ~high
        if low == 0:
            high += np.uint64(1)
        else:
            low = ~low + np.uint64(1)
    words[0], words[1] = np.int64(low), np.int64(high)


@kernel(_nrt=True)
def read_decimals(offsets, data, precision, scale, values, statuses):
    """Plain decimal numbers in units of 10 ** -scale, with at most 18 digits.

    Values are int64[n, 2], the words of 128-bit integers.
    """
    for at in range(len(values)):
        end = offsets[at + 1]
        status, number, n_after, here = read_decimal_parts(data, offsets[at], end)
        while n_after > scale and number % 10 == 0:
            number //= 10
            n_after -= 1
        n_more = scale - n_after
        n_digits = min(precision - n_more, _SAFE_DIGITS)
        is_inside = (
            0 <= n_more <= _SAFE_DIGITS and n_digits >= 0 and abs(number) < power_of_ten(n_digits)
        )
        if status == GOOD and here == end and is_inside:
            statuses[at] = GOOD
            write_product(number, power_of_ten(n_more), values[at])
        else:
            statuses[at] = ASK
            values[at, 0] = values[at, 1] = 0


@kernel(_nrt=True)
def read_two(data, begin):
    """The number of two digits, or -1."""
    if not (is_digit(data[begin]) and is_digit(data[begin + 1])):
        return -1
    return 10 * digit(data[begin]) + digit(data[begin + 1])


@kernel(_nrt=True)
def read_day(data, begin):
    """(status, days since 1970-01-01) of the ten bytes YYYY-MM-DD."""
    century, years = read_two(data, begin), read_two(data, begin + 2)
    month, day = read_two(data, begin + 5), read_two(data, begin + 8)
    if data[begin + 4] != _MINUS or data[begin + 7] != _MINUS:
        return ASK, 0
    if century < 0 or years < 0 or month < 1 or month > 12 or day < 1:
        return ASK, 0
    year = 100 * century + years
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if month == 2:
        last_day = 29 if is_leap else 28
    else:
        last_day = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    if year < 1 or day > last_day:
        return ASK, 0
    # Days of the proleptic Gregorian calendar, with years that begin in March.
    shifted = year - 1 if month <= 2 else year
    month_from_march = (month + 9) % 12
    day_of_year = (153 * month_from_march + 2) // 5 + day - 1
    day_number = 365 * shifted + shifted // 4 - shifted // 100 + shifted // 400 + day_of_year
    return GOOD, day_number - 719_468


@kernel(_nrt=True)
def read_dates(offsets, data, values, statuses):
    """Dates written YYYY-MM-DD, as days since 1970-01-01."""
    for at in range(len(values)):
        statuses[at] = ASK
        values[at] = 0
        if offsets[at + 1] - offsets[at] == 10:
            statuses[at], values[at] = read_day(data, offsets[at])


@kernel(_nrt=True)
def read_fraction(data, begin, end):
    """(microseconds, end position) of at most six digits after a point."""
    microseconds, unit, here = 0, 100_000, begin
    while here < end and unit > 0 and is_digit(data[here]):
        microseconds += unit * digit(data[here])
        unit //= 10
        here += 1
    return microseconds, here


@kernel(_nrt=True)
def read_offset(data, begin, end):
    """(status, microseconds east of UTC) of an empty text, Z or ±HH:MM."""
    if begin == end or (end - begin == 1 and data[begin] == _BIG_Z):
        return GOOD, 0
    if end - begin != 6 or data[begin + 3] != _COLON:
        return ASK, 0
    hours, minutes = read_two(data, begin + 1), read_two(data, begin + 4)
    if hours < 0 or minutes < 0 or minutes > 59 or 60 * hours + minutes > 18 * 60:
        return ASK, 0
    offset = (60 * hours + minutes) * 60_000_000
    if data[begin] == _MINUS:
        return GOOD, -offset
    return (GOOD if data[begin] == _PLUS else ASK), offset


@kernel(_nrt=True)
def read_instant(data, begin, end):
    """(status, microseconds since 1970) of one timestamp."""
    if end - begin < 10:
        return ASK, 0
    status, days = read_day(data, begin)
    if end - begin == 10 or status == ASK:
        return status, days * _DAY_MICROSECONDS
    if end - begin < 16 or (data[begin + 10] != _BIG_T and data[begin + 10] != _SPACE):
        return ASK, 0
    hours, minutes = read_two(data, begin + 11), read_two(data, begin + 14)
    seconds, microseconds, here = 0, 0, begin + 16
    if here + 3 <= end and data[here] == _COLON:
        seconds = read_two(data, here + 1)
        here += 3
        if here + 1 < end and data[here] == _POINT and is_digit(data[here + 1]):
            microseconds, here = read_fraction(data, here + 1, end)
    if data[begin + 13] != _COLON or not (0 <= hours <= 23 and 0 <= minutes <= 59):
        return ASK, 0
    if not 0 <= seconds <= 59:
        return ASK, 0
    if here + 1 < end and data[here] == _SPACE:
        here += 1
    status, offset = read_offset(data, here, end)
    instant = (3600 * hours + 60 * minutes + seconds) * 1_000_000 + microseconds
    instant += days * _DAY_MICROSECONDS - offset
    if not _FIRST_INSTANT <= instant <= _LAST_INSTANT:
        return ASK, 0
    return status, instant


@kernel(_nrt=True)
def read_timestamps(offsets, data, values, statuses):
    """Timestamps as `parse_timestamp` reads them, as microseconds since 1970."""
    for at in range(len(values)):
        statuses[at], values[at] = read_instant(data, offsets[at], offsets[at + 1])

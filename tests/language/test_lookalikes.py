"""Names that look like others."""

from __future__ import annotations

import pytest

from tamis.language.lookalikes import (
    Lookalike,
    Use,
    describe_lookalikes,
    find_alike,
    find_lookalikes,
    is_alike,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("agee", "age"),
        ("ComandLine", "CommandLine"),
        ("Age", "age"),
        ("user_id", "UserId"),
        ("recieve", "receive"),
        ("contry", "country"),
        ("colour", "colous"),
        ("comand_line", "CommandLine"),
    ],
)
def test_misspellings_look_alike(one, other):
    assert is_alike((one,), (other,))
    assert is_alike((other,), (one,))
    assert is_alike(("user", one), ("user", other))
    assert is_alike((one, "name"), (other, "name"))
    assert list(find_alike([(one,), ("between",), (other,)])) == [((one,), (other,))]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("age", "age"),
        ("port1", "port2"),
        ("port1", "port12"),
        ("port", "port1"),
        ("a", "b"),
        ("x", "xy"),
        ("lat", "lon"),
        ("source", "target"),
        ("abcd", "badc"),
    ],
)
def test_other_names_do_not(one, other):
    assert not is_alike((one,), (other,))
    assert not list(find_alike([(one,), (other,)]))


def test_a_name_with_a_dot_looks_like_a_path():
    one, other = ("process.Name",), ("process", "name")
    assert is_alike(one, other)
    assert list(find_alike([one, ("process",), other])) == [(one, other)]
    assert not is_alike(("process.nme",), ("process", "name"))


def test_paths_differ_in_one_step_at_most():
    assert not is_alike(("user", "name"), ("user",))
    assert not is_alike(("usr", "nme"), ("user", "name"))


def test_all_pairs_are_found_that_comparing_each_with_each_finds():
    names = [
        (f"{start}{middle}{end}",) for start in ("ag", "ga") for middle in "ex" for end in "e1"
    ]
    names += [("ages",), ("Age",), ("a_ge",), ("gae",), ("aeg",)]
    expected = {
        frozenset((one, other))
        for at, one in enumerate(names)
        for other in names[:at]
        if is_alike(one, other)
    }
    assert {frozenset(pair) for pair in find_alike(names)} == expected


def uses_of(**counts: int) -> dict[tuple[str, ...], Use]:
    return {(name,): Use(n, f"of-{name}") for name, n in counts.items()}


def test_the_rare_one_is_misspelt():
    found = find_lookalikes(uses_of(age=50, agee=1, country=7))
    assert found == [Lookalike("agee", "age", 1, 50, "of-agee")]


@pytest.mark.parametrize("n_common", [1, 2, 9])
def test_one_that_is_used_nearly_as_often_is_not(n_common):
    assert find_lookalikes(uses_of(age=n_common, agee=1)) == []


def test_case_alone_needs_fewer_uses():
    assert [one.attribute for one in find_lookalikes(uses_of(age=3, Age=2))] == ["Age"]
    assert find_lookalikes(uses_of(age=2, Age=2)) == []


def test_of_several_it_looks_like_the_most_used():
    (found,) = find_lookalikes(uses_of(ages=20, aged=1, age=100))
    assert (found.attribute, found.looks_like) == ("aged", "age")


def test_the_sentence_has_a_count_examples_and_what_to_do():
    found = find_lookalikes(uses_of(age=500, agee=1, name=500, nme=2, nam=3, namee=4))
    shown = describe_lookalikes(found)
    assert shown == (
        '4 attributes look misspelt: agee (subscription "of-agee") looks like age '
        '(500 subscriptions); nme (2 subscriptions, such as "of-nme") looks like name '
        '(500 subscriptions); nam (3 subscriptions, such as "of-nam") looks like name '
        "(500 subscriptions); …. Correct the expressions, or declare a schema that has all names "
        "if they are right"
    )

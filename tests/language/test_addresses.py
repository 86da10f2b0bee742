"""IP addresses and networks: what is read, what is refused, how they are printed."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from random import Random

import pytest

import tamis
from tamis.errors import ExpressionError, SchemaError, TypeCheckError
from tamis.language import Schema, check, parse, print_expression, print_for_spark
from tamis.language.infer import infer_schema, infer_schema_from_events
from tamis.language.types import IP, WrongTypeError, read_value
from tamis.language.types.addresses import (
    join_networks,
    parse_address,
    parse_network,
    print_address,
)
from tamis.logic.canonical import canonicalize
from tests.generators.conditions import NETWORKS

SCHEMA = Schema.of("ip IP, s STRING, n BIGINT, ips ARRAY<IP>")
_MAPPED = 0xFFFF << 32


def test_addresses_are_ordered_by_their_numbers():
    rng = Random(5)
    texts = [str(IPv4Address(rng.getrandbits(32))) for _ in range(50)]
    texts += [str(IPv6Address(rng.getrandbits(128) >> rng.choice((0, 64, 100)))) for _ in range(50)]

    def number(text):
        address = ip_address(text)
        return int(address) + (_MAPPED if address.version == 4 else 0)

    by_number = sorted(texts, key=number)
    assert sorted(texts, key=parse_address) == by_number
    assert [print_address(parse_address(text)) for text in texts] == [
        print_address(f"{number(text):032x}") for text in texts
    ]


@pytest.mark.parametrize("text", ["10.0.0.1", "255.255.255.255", "0.0.0.0", "::", "2001:db8::1"])
def test_addresses_are_printed_as_they_are_written(text):
    assert print_address(parse_address(text)) == text
    assert read_value(ip_address(text), IP) == parse_address(text)
    assert read_value(parse_address(text), IP) == parse_address(text)


def test_a_mapped_address_is_one_of_version_4():
    assert print_address(parse_address("::FFFF:102:304")) == "1.2.3.4"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "1.2.3",
        "1.2.3.04",
        "1.2.3.4 ",
        "1.2.3.4/32",
        "fe80::1%eth0",
        "1::2::3",
        "١.2.3.4",
        1,
        b"1",
        True,
    ],
)
def test_what_is_no_address_is_refused(value):
    with pytest.raises(WrongTypeError):
        read_value(value, IP)


def test_networks_are_ranges():
    rng = Random(7)
    for text in (*NETWORKS, "10.0.0.0/31", "192.168.0.0/17", "2001:db8:8000::/33"):
        network, (first, last) = ip_network(text), parse_network(text)
        assert parse_address(str(network[0])) == first
        assert parse_address(str(network[-1])) == last
        inside = network[rng.randrange(network.num_addresses)]
        assert first <= parse_address(str(inside)) <= last


def test_networks_that_touch_are_one_range():
    touching = [
        parse_network(text) for text in ("10.128.0.0/9", "10.0.0.0/9", "11.0.0.1", "10.7.0.0/16")
    ]
    assert join_networks(touching) == [parse_network("10.0.0.0/8"), parse_network("11.0.0.1")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("in_network(ip, '10.1.2.3/8')", "write '10.0.0.0/8'"),
        ("in_network(ip, '10.0.0.0/33')", "is not a network"),
        ("in_network(ip, '10.0.0.0/255.0.0.0')", "is not a network"),
        ("in_network(ip, '10.0.0.0/')", "is not a network"),
        ("in_network(ip, '10.0.0.0/08')", "write '10.0.0.0/8', without leading zeros"),
        ("in_network(ip, '10.0.0.*')", "'10.0.0.*' is not a network; write '10.0.0.0/24'"),
        ("in_network(ip, '10.1.*.*')", "write '10.1.0.0/16'"),
        ("in_network(ip, '10.*')", "write '10.0.0.0/8'"),
        ("in_network(ip, '::ffff:10.0.0.0/8')", "has bits behind its first 8; write '10.0.0.0/8'"),
        ("in_network(ip, '::ffff:10.1.2.3/120')", "write '10.1.2.0/24'"),
        ("in_network(ip, '2001:db8::1/32')", "write '2001:db8::/32'"),
        ("in_network(ip, 'ten')", "is not an IP address"),
        ("in_network(ip, 'fe80::%eth0/10')", "has a zone"),
        ("in_network(s, '10.0.0.0/8')", "s is a string; in_network() tests one address"),
        ("in_network(ips, '10.0.0.0/8')", "exists(ips, x -> in_network(x, '…'))"),
        ("ip = '10.0.0.0/8'", "in_network() tests whether"),
        ("ip = 5", "ip is an IP address, compared with an integer"),
        ("ip = s", "they cannot be compared"),
        ("ip LIKE '10.%'", "LIKE tests a string"),
    ],
)
def test_misfits_are_refused(text, message):
    with pytest.raises(TypeCheckError, match=r".") as found:
        check(parse(text), SCHEMA)
    assert message in str(found.value)


@pytest.mark.parametrize(
    "text",
    [
        "ip IN_NETWORK '10.0.0.0/8'",
        "ip|cidr: '10.0.0.0/8'",
        "cidr(ip, '10.0.0.0/8')",
        "cidrmatch('10.0.0.0/8', ip)",
        "ipv4_is_in_range(ip, '10.0.0.0/8')",
    ],
)
def test_spellings_of_other_languages(text):
    with pytest.raises(ExpressionError) as found:
        check(parse(text), SCHEMA)
    assert found.value.hint == "write in_network(ip, '10.0.0.0/8')"


@pytest.mark.parametrize("text", ["ip = '10.0.0.1'", "NOT in_network(ip, '10.0.0.0/8', '::1')"])
def test_what_is_printed_is_read_again(text):
    typed = check(parse(text), SCHEMA)
    assert print_expression(typed) == text
    assert check(parse(print_expression(typed)), SCHEMA) == typed


def test_networks_are_canonical_ranges():
    networks = check(parse("in_network(ip, '10.0.0.0/9', '10.128.0.0/9')"), SCHEMA)
    between = check(parse("ip BETWEEN '10.0.0.0' AND '10.255.255.255'"), SCHEMA)
    assert canonicalize(networks) == canonicalize(between)


def test_spark_has_the_digits_of_an_address():
    text = print_for_spark(check(parse("in_network(ip, '10.0.0.0/8') OR ip = '::1'"), SCHEMA))
    first, last = "00000000000000000000ffff0a000000", "00000000000000000000ffff0affffff"
    assert text == f"(ip BETWEEN '{first}' AND '{last}') OR ip = '{'0' * 31}1'"


def test_types_are_inferred_from_networks_and_values():
    text = "in_network(ip, '10.0.0.0/8') AND ip <> '10.0.0.1'"
    assert infer_schema([parse(text)])["ip",] == IP
    assert infer_schema_from_events([{"ip": IPv6Address("::1")}])["ip",] == IP
    index = tamis.build({"a": text})
    assert index.match({"ip": IPv4Address("10.0.0.2")}) == ["a"]
    assert index.match({"ip": "10.0.0.1"}) == []


def test_an_index_with_addresses_is_saved_and_opened(tmp_path):
    expressions = {"a": "in_network(ip, '10.0.0.0/8')", "b": "ip > '2001:db8::'", "c": "ip IS NULL"}
    tamis.build(expressions).save(tmp_path / "index")
    opened = tamis.open(tmp_path / "index", trusted=False)
    assert opened.match({"ip": "10.3.0.1"}) == ["a"]
    assert opened.match({"ip": "2001:db8::1"}) == ["b"]
    assert opened.match({"ip": "ten"}) == ["c"]


def test_no_parameter_of_an_operator_is_an_address():
    with pytest.raises(SchemaError, match="a parameter cannot be of type ip"):
        Schema.of("p(IP) OPERATOR")


def test_addresses_read_from_strings_have_no_spark_form():
    condition = tamis.parse("in_network(cast(ip AS IP), '10.0.0.0/8')")
    with pytest.raises(tamis.TamisError, match=r"no Spark SQL form: cast\(ip AS ip\)"):
        print_for_spark(condition)

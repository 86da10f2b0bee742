"""Settings are what they say, or an error that names them."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from tamis.errors import InputError, TamisWarning
from tamis.server.settings import Settings
from tamis.server.settings_reading import OTHER_VARIABLES, read_settings

ROOT = Path(__file__).parents[2]


def read(tmp_path, text: str) -> Settings:
    file = tmp_path / "tamis.toml"
    file.write_text(text)
    return read_settings(file)


def lines(*settings: str) -> str:
    return "\n".join(
        f"[{section}]\n{rest}" for section, _, rest in (own.partition(".") for own in settings)
    )


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ('"250 ms"', 0.25),
        ("5", 5),
        ("0.5", 0.5),
        ('"90 sec"', 90),
        ('"5 MIN"', 300),
        ('"12 hours"', 43_200),
        ('"1.5d"', 129_600),
        ('"2 weeks"', 1_209_600),
        ('"365000 d"', 365_000 * 86_400),
    ],
)
def test_durations(tmp_path, given, seconds):
    settings = read(tmp_path, lines(f"subscriptions.default_lease = {given}"))
    assert settings.subscriptions.default_lease == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "given",
    [
        '"99999999999 d"',
        '"365001 d"',
        "inf",
        "nan",
        "-5",
        "1e300",
        "true",
        "[]",
        '"2 months"',
        '"1 decade"',
        '"5"',
        '"-5 s"',
        '""',
    ],
)
def test_what_is_no_duration(tmp_path, given):
    message = "default_lease is .*; a duration such as .* at most 365000 days is expected"
    with pytest.raises(InputError, match=message):
        read(tmp_path, lines(f"subscriptions.default_lease = {given}"))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("server.port = inf", "server.port is inf; an integer that is not negative is expected"),
        ("server.port = nan", "server.port is nan; an integer"),
        ("server.port = 80.5", "server.port is 80.5; an integer"),
        ("server.port = -1", "server.port is -1; an integer"),
        ("server.port = 65536", "server.port is 65536; 0 to 65535 are expected"),
        ("delivery.smtp_port = 65536", "delivery.smtp_port is 65536; 0 to 65535 are expected"),
        ("limits.requests_per_second = inf", "requests_per_second is inf; a number that is not"),
        ("limits.requests_per_second = nan", "requests_per_second is nan; a number that is not"),
        ("limits.event_size = -1", "event_size is -1; a number of bytes"),
        ("subscriptions.default_lease = 0", "default_lease is 0; a duration such as 1 d"),
        ("archive.retain_for = 0", 'retain_for is 0; a duration such as 30 d, or "none"'),
        ("archive.retain_for = -1", "retain_for is -1; a duration"),
        ("delivery.webhook_timeout = 0", "webhook_timeout is 0; a duration such as 20 s"),
        ('feeds.parse_memory = "63 MB"', "is 66,060,288 bytes; at least 64 MB are expected"),
        ("feeds.connections = 0", "feeds.connections is 0; at least 1 is expected"),
        ('archive.keep = "some"', "archive.keep is 'some'; one of all, matched, none"),
        ('server.public_url = "tamis.example.com"', "public_url is 'tamis.example.com'; an addr"),
        ('server.public_url = "ftp://tamis.example.com"', "an address such as https://tamis"),
        ('server.public_url = "https://"', "an address such as https://tamis.example.com is"),
        ('server.public_url = "https://a:b"', "an address such as https://tamis.example.com is"),
        ('server.public_url = "//a"', "an address such as https://tamis.example.com is expected"),
        ('server.follow = "writer"', "server.follow is 'writer'; an address such as http://wri"),
    ],
)
def test_what_is_no_value(tmp_path, setting, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read(tmp_path, lines(setting))


def test_all_errors_are_reported(tmp_path):
    file = tmp_path / "tamis.toml"
    file.write_text(
        "limits = 3\n[server]\nprot = 80\n[limit]\nstreams = 3\n[feeds]\nconnections = -1"
    )
    with pytest.raises(InputError) as raised:
        read_settings(file, {"TAMIS_SERVER_HOTS": "a", "TAMIS_SERVR_HOST": "b"})
    first, *rest = raised.value.message.splitlines()
    assert first == "the settings have 6 errors:"
    assert rest == [
        f"  {file}: limits is 3; a section is expected",
        f'  {file}: there is no setting "server.prot" (did you mean "port"?)',
        f'  {file}: there is no section "limit" (did you mean "limits"?)',
        f"  {file}: feeds.connections is -1; an integer that is not negative is expected",
        '  TAMIS_SERVER_HOTS: there is no setting "server.hots" (did you mean "host"?)',
        '  TAMIS_SERVR_HOST: there is no such setting (did you mean "TAMIS_SERVER_HOST"?)',
    ]


def test_what_may_be_none_or_zero(tmp_path):
    settings = read(
        tmp_path,
        lines(
            'archive.retain_for = "none"',
            'server.public_url = "https://tamis.example.com:8443/x"',
            "feeds.host_pause = 0",
        ),
    )
    assert settings.archive.retain_for is None
    assert settings.server.public_url == "https://tamis.example.com:8443/x"
    assert settings.feeds.host_pause == timedelta()


def test_the_defaults_are_valid():
    assert read_settings() == Settings()


# ── environment variables ───────────────────────────────────────────────────────────────────


def test_variables_are_settings():
    assert read_settings(environment={"TAMIS_SERVER_PORT": "9"}).server.port == 9


@pytest.mark.parametrize(
    ("variable", "likely"),
    [
        ("TAMIS_SEVER_PORT", "TAMIS_SERVER_PORT"),
        ("TAMIS_SERVR_PORT", "TAMIS_SERVER_PORT"),
        ("TAMIS_SERVER_PROT", "port"),
        ("TAMIS_PUBLIC_URL", "TAMIS_SERVER_PUBLIC_URL"),
        ("TAMIS_CACHE_DIRS", "TAMIS_CACHE_DIR"),
    ],
)
def test_a_misspelt_variable_is_an_error(variable, likely):
    with pytest.raises(InputError, match=f"^{variable}: there is no") as caught:
        read_settings(environment={variable: "1"})
    assert caught.value.hint == f'did you mean "{likely}"?'


def test_a_variable_that_is_no_setting_is_reported():
    with pytest.warns(TamisWarning, match="the environment variable TAMIS_XYZ is ignored"):
        assert read_settings(environment={"TAMIS_XYZ": "1"}) == Settings()


def test_variables_of_others():
    of_clusters = ("SERVICE_HOST", "SERVICE_PORT_HTTP", "PORT", "PORT_8080_TCP_ADDR")
    names = [f"TAMIS_{name}" for name in (*OTHER_VARIABLES, *of_clusters)]
    assert read_settings(environment=dict.fromkeys(names, "1") | {"HOME": "/"}) == Settings()


def test_every_variable_in_the_sources_is_known():
    files = [ROOT / "Makefile", *ROOT.glob("src/**/*.py"), *ROOT.glob("benchmarks/**/*.py")]
    files += [file for file in ROOT.glob("tests/**/*.py") if file != Path(__file__)]
    known = {name.replace(".", "_").upper() for name, _, _ in Settings().describe()}
    found = {
        name
        for file in files
        for name in re.findall(r"\bTAMIS_([A-Z]+(?:_[A-Z]+)*)\b", file.read_text())
    }
    assert {"CACHE_DIR", "SERVER_PORT"} <= found
    assert found <= known | OTHER_VARIABLES

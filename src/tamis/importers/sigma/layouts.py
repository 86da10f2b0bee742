"""Layouts of events: where the fields that Sigma names are in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.errors import InputError
from tamis.language.types import parse_declared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.schema import Path
    from tamis.language.types import Type


_INTEGER: Final = parse_declared("integer from string")


class Layout(NamedTuple):
    """The attributes of fields: by name, and for all others a prefix."""

    prefix: str = ""
    fields: Mapping[str, tuple[str, ...]] = {}
    types: Mapping[Path, Type] = {}  # of those that are not strings


_SYSTEM: Final = "EventID Channel Computer Level Task Opcode Keywords EventRecordID Version".split()
# Some providers put their fields below the name of a template instead of EventData.
_USER_DATA: Final = {"Operation_ClientFailure": ("Operation", "PossibleCause", "ClientMachine")}

LAYOUTS: Final = {
    # One object of names and values, as in the Security Datasets, Zeek, and cloud services.
    "flat": Layout(types={("EventID",): _INTEGER}),
    # Windows events as evtx_dump and similar tools write them.
    "evtx": Layout(
        "Event.EventData",
        {
            **{name: (f"Event.System.{name}",) for name in _SYSTEM},
            "Provider_Name": ("Event.System.Provider.`#attributes`.Name",),
            **{
                name: (f"Event.EventData.{name}", f"Event.UserData.{wrapper}.{name}")
                for wrapper, names in _USER_DATA.items()
                for name in names
            },
        },
        {
            ("Event", "System", name): _INTEGER
            for name in ("EventID", "Level", "Task", "Opcode", "EventRecordID", "Version")
        },
    ),
    # Windows events as Winlogbeat sends them.
    "winlogbeat": Layout(
        "winlog.event_data",
        {
            "EventID": ("winlog.event_id",),
            "Channel": ("winlog.channel",),
            "Computer": ("winlog.computer_name",),
            "Provider_Name": ("winlog.provider_name",),
            "EventRecordID": ("winlog.record_id",),
            "Level": ("log.level",),
            "Task": ("winlog.task",),
            "Opcode": ("winlog.opcode",),
            "Keywords": ("winlog.keywords",),
        },
        {},
    ),
}


def find_layout(name: str) -> Layout:
    """The layout of that name; without a name, `flat`."""
    layout = LAYOUTS.get(name or "flat")
    if layout is None:
        raise InputError(f'unknown layout "{name}"; allowed: {", ".join(LAYOUTS)}')
    return layout

"""Lists of feeds."""

from __future__ import annotations

import pytest

from tamis.broker.sources import NewSource
from tamis.errors import InputError
from tamis.feeds.opml import MOST_BYTES, read_opml, write_opml

DOCUMENT = b"""<?xml version="1.0"?><opml version="1.0"><head><title>x</title></head><body>
<outline text="News"><outline text="World">
<outline type="rss" text="A" title="A &amp; B" xmlUrl="https://a.example/feed" category="/x/y,z"/>
</outline></outline>
<outline text="no feed" url="https://c.example/"/>
<outline xmlurl="https://b.example/feed"/></body></opml>"""


def test_folders_and_categories_are_tags():
    assert read_opml(DOCUMENT) == [
        NewSource("https://a.example/feed", "A & B", ("News", "World", "x/y", "z")),
        NewSource("https://b.example/feed", "", ()),
    ]


def test_what_is_written_is_read():
    sources = [
        NewSource("https://a.example/?a=1&b=2", 'Ann\'s "A" & <B>', ("p", "q")),
        NewSource("https://b.example/feed", "B", ("p",)),
        NewSource("https://c.example/feed", "C", ()),
    ]
    assert sorted(read_opml(write_opml(sources).encode())) == sorted(sources)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "is not XML"),
        (b"<opml><body></opml>", "is not XML"),
        (b"<rss></rss>", "is not OPML"),
        (b"<opml></opml>", "is not OPML"),
        (b"<opml><body/></opml>", "has no feeds"),
        (b"<opml><body><outline text='x' url='https://a.example/'/></body></opml>", "no feeds"),
        (b"<opml><body><outline text='a & b' xmlUrl='x'></body></opml>", "is not XML: not well"),
        (b"<?xml version='1.0' encoding='nonsense'?><opml/>", "is not XML"),
        (b"x" * (MOST_BYTES + 1), "at most"),
    ],
)
def test_other_documents_are_errors(body, message):
    with pytest.raises(InputError, match=message):
        read_opml(body)


def test_entities_do_not_explode():
    entities = b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9))
    bomb = b'<!DOCTYPE x [<!ENTITY a "ha">%s]><opml><body>&j;</body></opml>' % entities
    with pytest.raises(InputError, match="is not XML"):
        read_opml(bomb)


@pytest.mark.parametrize("text", [b"", b" text='f'"])
def test_deep_folders(text):
    feed = b"<outline xmlUrl='https://a.example/'/>"
    body = b"<outline%s>" % text * 5_000 + feed + b"</outline>" * 5_000
    (found,) = read_opml(b"<opml><body>%s</body></opml>" % body)
    assert found.tags == (("f",) if text else ())


def test_the_case_of_tags_does_not_count():
    body = b"""<OPML xmlns="https://opml.example/"><Head/><BODY><Outline TEXT="News">
    <OUTLINE XMLURL="https://a.example/" Title="A"/></Outline></BODY></OPML>"""
    assert read_opml(body) == [NewSource("https://a.example/", "A", ("News",))]


def test_ampersands_that_are_not_escaped():
    body = b"""<opml><body><outline text="R&D &amp; more &copy; &#38;"
    xmlUrl="https://a.example/?a=1&b=2&amp;c=3"/></body></opml>"""
    assert read_opml(body) == [
        NewSource("https://a.example/?a=1&b=2&c=3", "R&D & more &copy; &", ())
    ]

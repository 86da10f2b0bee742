"""Documents of feeds, good and bad, are read as documented."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from itertools import pairwise

import orjson
import pytest

from tamis.feeds.documents import MOST_BODY, NOTES, FeedDocument, NotAFeedError
from tamis.feeds.html_text import to_text
from tamis.feeds.parse_process import LEAST_MEMORY, ParseProcess
from tamis.feeds.parsing import read_document
from tamis.language.types.moments import to_microseconds
from tests.feeds.places import REAL, item, rss
from tests.waiting import HANG_SECONDS

URL = "https://example.com/news/feed"
NEW_YEAR = to_microseconds(datetime(2020, 1, 1, tzinfo=UTC))

ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="fr" xml:base="https://example.com/">
<title type="html">News &amp;amp; more</title><link href="/"/>
<link rel="hub" href="https://hub.example/"/>
<entry><id>tag:1</id>
<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">x <b>y</b></div></title>
<link href="/a"/><updated>2020-01-01T01:00:00+01:00</updated><author><name>Ann</name></author>
<category term="c" label="Climate"/>
<content type="html">&lt;p&gt;c&lt;/p&gt;</content><summary>s</summary></entry>
</feed>"""
RDF = b"""<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"
xmlns:sy="http://purl.org/rss/1.0/modules/syndication/">
<channel rdf:about="https://example.com/"><title>News</title><link>https://example.com/</link>
<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency></channel>
<item rdf:about="https://example.com/1"><title>one</title><link>https://example.com/1</link>
<dc:date>2020-01-01T00:00:00Z</dc:date><dc:subject>cat</dc:subject>
<dc:creator>Ann</dc:creator></item></rdf:RDF>"""
RSS_091 = b"""<?xml version="1.0"?>
<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN"
"http://my.netscape.com/publish/formats/rss-0.91.dtd"><rss version="0.91"><channel>
<title>News</title>
<item><title>one</title><link>https://example.com/1</link></item></channel></rss>"""
JSON = orjson.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "News",
        "language": "en-GB",
        "home_page_url": "https://example.com/",
        "hubs": [{"type": "WebSub", "url": "https://hub.example/"}],
        "items": [
            {
                "id": 1,
                "url": "/1",
                "title": "one",
                "content_html": "<p>a<b>b</b></p>",
                "date_published": "2020-01-01T00:00:00Z",
                "tags": ["t", "t", 3],
                "authors": [{"name": "Ann"}],
            },
            "no item",
        ],
    }
)


def notes_of(document: FeedDocument) -> dict[str, int]:
    return {own["kind"]: own["count"] for own in document.notes.to_json()}


def test_rss():
    document = read_document(
        rss(
            item(
                "A &lt;b&gt;big&lt;/b&gt; day",
                guid="1",
                link="/1",
                body="&lt;p&gt;Hello&lt;/p&gt;&lt;p&gt;w&lt;i&gt;or&lt;/i&gt;ld&lt;/p&gt;",
                date="Wed, 01 Jan 2020 00:00:00 GMT",
                category=["a", "b", "a"],
                author="Ann",
            ),
            channel="<link>https://example.com/</link><language>EN_us</language><ttl>90</ttl>"
            "<skipHours><hour>3</hour><hour>24</hour></skipHours>"
            "<skipDays><day>Sunday</day></skipDays>",
        ),
        "application/rss+xml",
        URL,
    )
    assert (document.kind, document.title, document.home) == (
        "rss20",
        "News",
        "https://example.com/",
    )
    assert (document.least_interval, document.skip_hours, document.skip_days) == (
        5_400,
        (0, 3),
        (6,),
    )
    (own,) = document.items
    assert (own.id, own.link, own.title) == ("1", "https://example.com/1", "A big day")
    assert (own.body, own.lang, own.published) == ("Hello\nworld", "en", NEW_YEAR)
    assert (own.categories, own.author) == (("a", "b"), "Ann")
    assert notes_of(document) == {}
    assert FeedDocument.from_json(document.to_json()).items == document.items


def test_atom():
    document = read_document(ATOM, "", URL)
    assert document.title == "News & more"
    (own,) = document.items
    assert (own.id, own.link, own.title, own.body) == ("tag:1", "https://example.com/a", "x y", "c")
    assert (own.lang, own.author, own.categories) == ("fr", "Ann", ("Climate",))
    assert own.published == NEW_YEAR


def test_rdf():
    document = read_document(RDF, "", URL)
    assert document.least_interval == 43_200
    (own,) = document.items
    assert (own.id, own.title, own.published) == ("https://example.com/1", "one", NEW_YEAR)
    assert (own.categories, own.author) == (("cat",), "Ann")


def test_rss_091_without_ids():
    document = read_document(RSS_091, "", URL)
    assert [own.link for own in document.items] == ["https://example.com/1"]
    assert notes_of(document) == {"no-date": 1, "no-id": 1}


def test_json_feed():
    document = read_document(b"\xef\xbb\xbf" + JSON, "application/feed+json", URL)
    assert document.kind == "json11"
    (own,) = document.items
    assert (own.id, own.link, own.body, own.lang) == ("1", "https://example.com/1", "ab", "en")
    assert (own.categories, own.author, own.published) == (("t",), "Ann", NEW_YEAR)
    assert notes_of(document) == {"bad-json-item": 1}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"hello", "neither RSS nor Atom"),
        (b"/etc/passwd", "neither RSS nor Atom"),
        (b"<svg></svg>", "neither RSS nor Atom"),
        (b"{", "not JSON"),
        (b'{"items": []}', "not a JSON Feed"),
        (b'{"version": "https://jsonfeed.org/version/1", "items": 3}', "not a JSON Feed"),
        (b"[1]", "not a JSON Feed"),
        (b"<!doctype html><html><body>x</body></html>", "web page"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "neither RSS nor Atom"),
    ],
)
def test_other_documents_are_errors(body, message):
    with pytest.raises(NotAFeedError, match=message):
        read_document(body, "", URL)


def test_a_page_names_its_feeds():
    page = b"""<html><head><base href="https://example.com/blog/">
    <link rel="alternate" type="application/rss+xml" href="feed.xml">
    <LINK REL='stylesheet alternate' TYPE='application/atom+xml; charset=utf-8' href='/atom'>
    <link rel="alternate" type="text/html" hreflang="de" href="/de">
    <link rel="alternate" type="application/rss+xml" href="javascript:alert(1)"></head></html>"""
    with pytest.raises(NotAFeedError) as raised:
        read_document(page, "text/html", URL)
    assert raised.value.links == ["https://example.com/blog/feed.xml", "https://example.com/atom"]


# ── what is wrong in documents ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("declared", "real"),
    [("utf-8", "windows-1252"), ("us-ascii", "utf-8"), ("iso-8859-1", "utf-8")],
)
def test_wrong_encodings(declared, real):
    text = rss(item("caf\xe9 “na\xefve”", guid="1", date="2020-01-01")).decode()
    body = text.replace('encoding="utf-8"', f'encoding="{declared}"').encode(real)
    document = read_document(body, "", URL)
    assert [own.title for own in document.items] == ["caf\xe9 “na\xefve”"]
    assert set(notes_of(document)) == {"wrong-encoding"}


def test_the_first_bytes_of_utf_16_win():
    text = rss(item("Москва", guid="1", date="2020-01-01")).decode()
    for content_type in ("", "text/xml; charset=iso-8859-1"):
        document = read_document(text.encode("utf-16"), content_type, URL)
        assert [own.title for own in document.items] == ["Москва"]


def test_other_first_bytes():
    text = rss(item("Москва", guid="1", date="2020-01-01"), item("Ока", guid="2")).decode()
    document = read_document(text.replace("utf-8", "utf-32").encode("utf-32"), "", URL)
    assert [own.title for own in document.items] == ["Москва", "Ока"]
    end = len(text[: text.index("Ока")].encode("utf-16")) + 1
    cut = read_document(text.encode("utf-16")[:end], "", URL)
    assert [own.title for own in cut.items] == ["Москва"]
    assert "cut-off" in notes_of(cut)


def test_wrong_encodings_of_headers():
    body = rss(item("caf\xe9", guid="1", date="2020-01-01"))
    document = read_document(body, "text/xml; charset=ISO-8859-1", URL)
    assert [own.title for own in document.items] == ["caf\xe9"]


@pytest.mark.parametrize("content_type", ["text/xml", "text/html", "application/rss+xml"])
def test_a_type_without_a_charset_says_nothing_of_the_encoding(content_type):
    for encoding in ("utf-8", "windows-1251", "utf-16"):
        body = rss(item("Москва", guid="1", date="2020-01-01"), encoding=encoding)
        document = read_document(body, content_type, URL)
        assert [own.title for own in document.items] == ["Москва"]
        assert notes_of(document) == {}


@pytest.mark.parametrize("encoding", ["windows-1251", "koi8-r", "utf-16", "shift_jis", "gb2312"])
def test_declared_encodings(encoding):
    text = {"shift_jis": "日本", "gb2312": "中国"}.get(encoding, "Москва")
    document = read_document(rss(item(text, guid="1", date="2020-01-01"), encoding=encoding))
    assert [own.title for own in document.items] == [text]
    assert notes_of(document) == {}


def test_broken_xml_loses_no_item():
    body = rss(item("one &nbsp; &eacute; & two <b>bold", guid="1"), item("three", guid="2"))
    document = read_document(body, "", URL)
    assert [own.id for own in document.items] == ["1", "2"]
    assert document.items[1].title == "three"
    assert notes_of(document)["broken-xml"] == 1


@pytest.mark.parametrize(
    ("document", "end"),
    [
        (rss(item("one", guid="1"), item("two and more", guid="2")), b"</channel></rss>"),
        (
            ATOM.replace(
                b"</feed>", b"<entry><id>2</id><title>two and more</title></entry></feed>"
            ),
            b"</feed>",
        ),
        (
            RDF.replace(
                b"</rdf:RDF>", b'<item rdf:about="2"><title>two and more</title></item></rdf:RDF>'
            ),
            b"</rdf:RDF>",
        ),
    ],
)
def test_what_is_cut_off_is_told(document, end):
    assert "cut-off" not in notes_of(read_document(document, "", URL))
    # Its end is missing, no item is.
    ended = read_document(document.removesuffix(end), "", URL)
    assert [own.title for own in ended.items][-1] == "two and more"
    assert (len(ended.items), notes_of(ended)["cut-off"]) == (2, 1)
    cut = read_document(document[: document.index(b"and more")], "", URL)
    assert (len(cut.items), notes_of(cut)["cut-off"]) == (1, 1)
    between = document[: max(document.rfind(mark) for mark in (b"<item", b"<entry"))]
    assert notes_of(read_document(between, "", URL))["cut-off"] == 1


def test_every_document_that_ends_early_is_told():
    """Wherever it ends: complete items are read, and nothing is taken for the whole."""
    body = rss(*(item(f"t{n}", guid=str(n), date="2020-01-01") for n in range(3)))
    first = body.index(b"<item>")
    for end in range(first, body.rindex(b">")):
        document = read_document(body[:end], "", URL)
        assert {"broken-xml", "cut-off"} <= notes_of(document).keys(), body[:end]
        n_complete = body[:end].count(b"</item")
        assert [own.title for own in document.items] == [f"t{n}" for n in range(n_complete)]


def test_a_last_item_without_an_end_is_read_if_the_document_has_one():
    body = rss(item("one", guid="1"), item("two", guid="2").removesuffix("</item>"))
    document = read_document(body, "", URL)
    assert [own.title for own in document.items] == ["one", "two"]
    assert "cut-off" not in notes_of(document)


def test_entities_do_not_explode():
    names = "abcdefghij"
    entities = "".join(f'<!ENTITY {own} "{f"&{before};" * 10}">' for before, own in pairwise(names))
    bomb = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha ha">{entities}]><rss version="2.0">'
    bomb += f"<channel>{item('&j;', guid='1')}{item('two', guid='2')}</channel></rss>"
    document = read_document(bomb.encode(), "", URL)
    assert [own.id for own in document.items] == ["1", "2"]
    assert all(len(own.title) < 1_000 for own in document.items)
    assert notes_of(document)["broken-xml"] == 1


def test_external_entities_are_not_read(tmp_path):
    (tmp_path / "secret").write_text("secret")
    body = f'<!DOCTYPE r [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]><rss version="2.0">'
    body += f"<channel>{item('a&x;b', guid='1')}</channel></rss>"
    (own,) = read_document(body.encode(), "", URL).items
    assert "secret" not in own.title


def test_dates():
    dates = ["Wed, 01 Jan 2020 00:00:00 GMT", "2020-01-01", "yesterday", "Mon, 32 Jan 2020", ""]
    items = [item(f"t{n}", guid=str(n), date=date) for n, date in enumerate(dates)]
    document = read_document(rss(*items, item("old", guid="o", date="0001-01-01T00:00:00Z")))
    assert [own.published for own in document.items] == [NEW_YEAR, NEW_YEAR, None, None, None, None]
    assert notes_of(document) == {"bad-date": 2, "no-date": 1, "old-date": 1}


@pytest.mark.parametrize(
    ("date", "is_read"),
    [
        ("Lun, 06 Jan 2020 01:00:00 +0100", True),
        ("lundi 06 Jan 2020 00:00:00 GMT", True),
        ("Пн, 06 Jan 2020 00:00:00 +0000", True),
        ("s\u00e1b., 06 Jan 2020 00:00:00 GMT", True),
        ("Sun, 06 Jan 2020 00:00:00 GMT", True),  # it was a Monday
        ("Lun, 06 Janvier 2020 00:00:00 GMT", False),
        ("Lun, 32 Jan 2020 00:00:00 GMT", False),
        ("Lun, ", False),
    ],
)
def test_dates_with_other_names_of_days(date, is_read):
    (own,) = read_document(rss(item("t", guid="1", date=date))).items
    monday = to_microseconds(datetime(2020, 1, 6, tzinfo=UTC))
    assert own.published == (monday if is_read else None)


@pytest.mark.parametrize(
    "channel",
    [
        "<skipHours><hour>3</hour><hour>24</hour></skipHours><skipDays><day>Sunday</day></skipDays>",
        """<skiphours>
        <HOUR> 3</HOUR ><Hour x='y'>24</Hour></skiphours ><SKIPDAYS a='b'><Day c='d'>
        SUNDAY </Day></SKIPDAYS>""",
    ],
)
def test_hours_and_days_to_skip(channel):
    document = read_document(rss(channel=channel))
    assert (document.skip_hours, document.skip_days) == ((0, 3), (6,))


def test_a_pause_without_end_is_a_number():
    """The process that parses answers in JSON, which has no infinity."""
    document = read_document(rss(channel=f"<ttl>{'9' * 400}</ttl>"))
    read = FeedDocument.from_json(orjson.loads(orjson.dumps(document.to_json())))
    assert read.least_interval == document.least_interval > 86_400


@pytest.mark.parametrize(
    "channel",
    [
        "<skipHours/>",
        "<skipHoursX><hour>3</hour></skipHoursX>",
        "<hour>3</hour>",
        f"<skipHours>{' ' * 5_000}<hour>3</hour></skipHours>",
    ],
)
def test_no_hours_to_skip(channel):
    assert read_document(rss(channel=channel)).skip_hours == ()


def test_wrong_links_and_languages():
    document = read_document(
        rss(
            item("one", guid="1", link="javascript:alert(1)", date="2020-01-01"),
            item("two", guid="2", link="http://[", date="2020-01-01"),
            channel="<language>English (US)</language>",
        ),
        "",
        URL,
    )
    assert [(own.link, own.lang) for own in document.items] == [("", ""), ("", "")]
    assert notes_of(document) == {"bad-link": 2, "bad-language": 1}


@pytest.mark.parametrize(
    ("tag", "language", "is_noted"),
    [
        ("en-US", "en", False),
        ("EN_us", "en", False),
        ("eng", "en", False),
        ("ger", "de", False),
        ("deu-AT", "de", False),
        ("iw", "he", False),
        ("yue", "yue", False),
        ("und", "", False),
        ("xx", "", True),
        ("jp", "", True),  # the country; the language is ja
        ("xyq-US", "", True),
        ("english", "", True),
        ("en us", "", True),
    ],
)
def test_languages_are_codes_of_iso_639(tag, language, is_noted):
    document = read_document(
        rss(item("t", guid="1", date="2020-01-01"), channel=f"<language>{tag}</language>")
    )
    assert document.items[0].lang == language
    assert ("bad-language" in notes_of(document)) is is_noted


def test_long_texts_are_cut_and_empty_items_left_out():
    document = read_document(
        rss(
            item("x" * 5_000, guid="1", body="y " * MOST_BODY, date="2020-01-01"),
            "<item><guid isPermaLink='false'>2</guid><pubDate>2020-01-01</pubDate></item>",
        )
    )
    (own,) = document.items
    assert (len(own.title), len(own.body)) == (1_000, MOST_BODY - 1)
    assert notes_of(document) == {"cut-text": 2, "empty-item": 1}


def test_control_characters_and_surrogates_are_left_out():
    body = orjson.dumps({"version": "https://jsonfeed.org/version/1", "items": [{"id": "a\0b"}]})
    assert (
        read_document(body.replace(b'"id"', b'"title":"x\\u0000\\u0007y","id"')).items[0].title
        == "xy"
    )
    broken = rss(item("a&#0;b&#xD800;c", guid="1", date="2020-01-01"))
    assert "\0" not in read_document(broken).items[0].title


def test_every_note_has_a_meaning():
    assert all(NOTES.values())


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("a < b", "a < b"),
        ("<p>Hello <b>w</b>orld</p>two<ul><li>a<li>b</ul>c", "Hello world\ntwo\na\nb\nc"),
        ("a<br>b<script>x()</script><style>y</style><!-- z -->", "a\nb"),
        ("&amp;lt;b&gt; caf&eacute;&nbsp;x", "&lt;b> café x"),
        ("  many \n\n blanks\t ", "many blanks"),
    ],
)
def test_html_becomes_text(html, text):
    assert to_text(html) == text


# ── the process that parses ─────────────────────────────────────────────────────────────────


def run(process: ParseProcess, *bodies: bytes) -> list:
    async def read_all() -> list:
        found = []
        try:
            for body in bodies:
                try:
                    found.append(await process.read_document(body, "", URL))
                except NotAFeedError as error:
                    found.append(error)
        finally:
            await process.close()
        return found

    return asyncio.run(read_all())


def test_a_process_parses():
    first, page, second = run(
        ParseProcess(HANG_SECONDS), rss(item("one", guid="1")), b"<html><body>x", rss(item("two"))
    )
    assert [own.title for own in first.items] == ["one"]
    assert "web page" in str(page)
    assert [own.title for own in second.items] == ["two"]


SLEEPS = "import sys, time; time.sleep(1e6)"
DIES = "import sys; sys.exit(3)"
LIES = "import sys; sys.stdin.readline(); print('what?', flush=True); input()"


@pytest.mark.parametrize(
    ("script", "patience", "message"),
    [
        (SLEEPS, 0.01, "takes longer than 0.01 s"),
        (DIES, HANG_SECONDS, "ended the process"),
        (LIES, HANG_SECONDS, "ended the process"),
    ],
)
def test_a_process_that_fails_is_replaced(script, patience, message):
    process = ParseProcess(patience, command=(sys.executable, "-c", script))
    assert [message in str(own) for own in run(process, rss(), rss())] == [True, True]


def test_a_document_that_takes_too_much_memory_harms_no_other():
    greedy = b'<rss version="2.0"><channel>' + b"<item/>" * (1 << 21)
    first, second = run(
        ParseProcess(HANG_SECONDS, LEAST_MEMORY), greedy, rss(item("one", guid="1"))
    )
    assert str(first) in (
        "the document takes too much memory",
        "the document ended the process that reads it",
    )
    assert [own.title for own in second.items] == ["one"]


# ── real feeds ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(not REAL.exists(), reason="the real feeds are not here")
def test_real_feeds_are_read():
    counts = {}
    for path in sorted(REAL.glob("*.xml")):
        body = path.read_bytes()
        document = read_document(body, "application/rss+xml", URL)
        counts[path.stem] = len(document.items)
        assert len(document.items) == body.count(b"<item>")
        assert all(own.title and own.link for own in document.items)
        assert set(notes_of(document)) <= {"no-date", "no-id"}, path.stem
    assert sum(counts.values()) == 3_033

"""The text of a digest: one message for all that has matched since the last one."""

from __future__ import annotations

from email.message import EmailMessage
from email.utils import formatdate
from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.broker.headlines import clean_line, count_similar, find_headline, list_similar
from tamis.language.moments import spell_second

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.broker.mail import MailedMatch
    from tamis.broker.mailbox import Position
    from tamis.broker.stories import Story

MOST_SHOWN: Final = 20  # stories: matches with those that are similar
MOST_COUNTED: Final = 50  # subscriptions with their own line


class DigestContents(NamedTuple):
    """What a digest is about."""

    number: int  # of the digest
    after: Position  # events after this one
    up_to: Position
    counts: Mapping[str, int]  # matches by id of the subscription
    stories: Sequence[Story]  # the first of them
    missed: range | None  # events that retention removed before they were sent
    is_restored: bool  # the history is another one than that of the last digest


class Envelope(NamedTuple):
    """Who writes to whom."""

    sender: str
    address: str
    unsubscribe: str  # a URL
    confirm: str  # a URL
    host: str  # for the id of the message


def write_mail(contents: DigestContents, envelope: Envelope) -> EmailMessage:
    """The message, as text and as HTML. The same contents have the same id."""
    n_matches = sum(contents.counts.values())
    mail = EmailMessage()
    mail["Subject"] = _write_subject(n_matches, list(contents.counts))
    mail["From"] = envelope.sender
    mail["To"] = envelope.address
    mail["Date"] = formatdate()
    epoch, first = contents.after
    identity = f"digest.{contents.number}.{epoch}.{first}-{contents.up_to.event}"
    mail["Message-ID"] = f"<{identity}@{envelope.host}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["List-Unsubscribe"] = f"<{envelope.unsubscribe}>"
    mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    mail.set_content(_write_text(contents, n_matches, envelope))
    mail.add_alternative(_write_html(contents, n_matches, envelope), subtype="html")
    return mail


def write_question(number: int, envelope: Envelope) -> EmailMessage:
    """The message that asks an address whether it wants digests.

    It has nothing that those who ask for a digest can write, so that it cannot carry their text.
    """
    mail = EmailMessage()
    mail["Subject"] = "Do you want these digests?"
    mail["From"] = envelope.sender
    mail["To"] = envelope.address
    mail["Date"] = formatdate()
    mail["Message-ID"] = f"<question.{number}@{envelope.host}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(
        "Somebody asked for digests of matches to be sent to this address.\n\n"
        f"If you want them, confirm it within three days:\n{envelope.confirm}\n\n"
        "If you do not, ignore this message: nothing else will be sent to you.\n"
    )
    return mail


def _write_subject(n_matches: int, names: Sequence[str]) -> str:
    what = f"{n_matches:,} {'match' if n_matches == 1 else 'matches'}"
    if not names:
        return f"{what}: some events were removed"
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"{what}: {clean_line(names[0])[:80]}{more}"


def _write_notes(contents: DigestContents) -> list[str]:
    notes = []
    if contents.is_restored:
        notes.append(
            "The server was restored from a backup. Matches between the last digest and the "
            "restoration may be missing."
        )
    if contents.missed is not None:
        first, last = contents.missed.start, contents.missed.stop - 1
        notes.append(f"The events {first:,} to {last:,} were removed before they could be sent.")
    return notes


def _list_counts(contents: DigestContents) -> list[tuple[str, int]]:
    ordered = sorted(contents.counts.items(), key=lambda own: (-own[1], own[0]))
    return [(clean_line(name), count) for name, count in ordered[:MOST_COUNTED]]


def _count_rest(contents: DigestContents, n_matches: int) -> str | None:
    shown = [match for story in contents.stories for match in story.matches]
    n_shown = sum(len(match.subscriptions) for match in shown)
    return f"… and {n_matches - n_shown:,} more" if n_matches > n_shown else None


def _write_text(contents: DigestContents, n_matches: int, envelope: Envelope) -> str:
    lines = [*_write_notes(contents), f"Matches since the last digest: {n_matches:,}", ""]
    lines += [f"  {count:,}  {name}" for name, count in _list_counts(contents)]
    for story in contents.stories:
        match, headline = story.match, find_headline(story.match)
        lines += ["", f"* {headline.title}"]
        if headline.url is not None:
            lines.append(f"  {headline.url}")
        names = ", ".join(map(clean_line, match.subscriptions))
        lines.append(f"  {spell_second(match.moment)}, matches {names}")
        lines += [f"  {line}" for line in _describe_begin(story)]
        lines += [f"  {line}" for line in list_similar(story) if story.similar]
    if (rest := _count_rest(contents, n_matches)) is not None:
        lines += ["", rest]
    lines += ["", "--", f"No more digests: {envelope.unsubscribe}"]
    return "\n".join(lines) + "\n"


def _write_html(contents: DigestContents, n_matches: int, envelope: Envelope) -> str:
    parts = ["<!doctype html><html><body>"]
    parts += [f"<p><strong>{escape(note)}</strong></p>" for note in _write_notes(contents)]
    parts.append(f"<p>Matches since the last digest: {n_matches:,}</p><table>")
    parts += [
        f"<tr><td>{count:,}</td><td>{escape(name)}</td></tr>"
        for name, count in _list_counts(contents)
    ]
    parts.append("</table><ul>")
    for story in contents.stories:
        match, title = story.match, _link(story.match)
        names = escape(", ".join(map(clean_line, match.subscriptions)))
        moment = spell_second(match.moment)
        parts.append(f"<li>{title}<br><small>{moment}, matches {names}</small>")
        parts += [f"<br><small>{escape(line)}</small>" for line in _describe_begin(story)]
        if story.similar:
            parts.append(f"<br>{escape(count_similar(story))}<ul>")
            parts += [f"<li>{_link(other)}</li>" for other in story.similar]
            parts.append("</ul>")
        parts.append("</li>")
    parts.append("</ul>")
    if (rest := _count_rest(contents, n_matches)) is not None:
        parts.append(f"<p>{escape(rest)}</p>")
    link = escape(envelope.unsubscribe)
    parts.append(f'<p><small><a href="{link}">No more digests</a></small></p></body></html>')
    return "\n".join(parts) + "\n"


def _describe_begin(story: Story) -> list[str]:
    is_shown = story.event == story.match.event
    return [] if is_shown else [f"similar to event {story.event:,}, which came before"]


def _link(match: MailedMatch) -> str:
    headline = find_headline(match)
    title = escape(headline.title)
    return title if headline.url is None else f'<a href="{escape(headline.url)}">{title}</a>'

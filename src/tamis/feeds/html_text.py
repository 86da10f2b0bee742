"""The text of HTML: what a reader would see, as plain text."""

from __future__ import annotations

import re
from typing import Final

from selectolax.lexbor import LexborHTMLParser

_HIDDEN: Final = "script,style,template,noscript,svg,math,iframe"
_BLOCKS: Final = (
    "address,article,aside,blockquote,br,dd,details,div,dl,dt,fieldset,figcaption,figure,footer,"
    "form,h1,h2,h3,h4,h5,h6,header,hr,legend,li,main,nav,ol,option,p,pre,section,summary,table,"
    "tbody,td,tfoot,th,thead,tr,ul"
)
_MARK: Final = "\x1e"  # where a line ends
_SPACES: Final = re.compile(r"[ \t\r\n\f]+")
_BLANKS: Final = re.compile(r"[^\S\n]+")
_LINES: Final = re.compile(r" ?\n[ \n]*")
# Control characters other than line ends and tabs; they have no meaning in text.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def to_text(html: str) -> str:
    """The text of HTML; blocks become lines, and inline markup splits no words."""
    tree = LexborHTMLParser(html.replace(_MARK, " "))
    for node in tree.css(_HIDDEN):
        node.decompose()
    if tree.body is None:
        return ""
    for node in tree.body.css(_BLOCKS):
        node.insert_before(_MARK)
        node.insert_after(_MARK)
    text = tree.body.text(deep=True, separator="")
    return clean_text(_SPACES.sub(" ", text).replace(_MARK, "\n"))


def clean_text(text: str) -> str:
    """Text without control characters, lone surrogates and repeated blanks."""
    text = _CONTROL.sub("", text).encode("utf-8", "replace").decode()
    return _LINES.sub("\n", _BLANKS.sub(" ", text)).strip()


def clean_line(text: str) -> str:
    """The same, on one line."""
    return clean_text(text).replace("\n", " ")

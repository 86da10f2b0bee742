"""The process that parses documents: a job is a line of JSON and a body, an answer a line of JSON.

Documents come from strangers. Here, one that takes all memory or all time takes neither from the
server, which ends the process and goes on with another.
"""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from typing import Any, Final

import orjson

from tamis.errors import MissingDependencyError

NICENESS: Final = 5  # publishers come first


def main(most_memory: int) -> None:
    """Parse until the parent closes the pipe; `most_memory`: bytes of addresses."""
    os.nice(NICENESS)
    with suppress(ValueError, OSError):  # a system that has lower limits keeps them
        resource.setrlimit(resource.RLIMIT_AS, (most_memory, most_memory))
    given, answers = sys.stdin.buffer, sys.stdout.buffer
    while line := given.readline():
        job = orjson.loads(line)
        answer = orjson.dumps(_answer(given.read(job["n_bytes"]), job))
        with suppress(BrokenPipeError):  # the parent was killed
            answers.write(b"%d\n" % len(answer) + answer)
            answers.flush()


def _answer(body: bytes, job: dict[str, Any]) -> dict[str, Any]:
    try:
        from tamis.feeds.documents import NotAFeedError
        from tamis.feeds.parsing import read_document
    except ImportError as error:
        missing = MissingDependencyError(
            f"feeds need the package {error.name}", hint="pip install 'tamis[feeds]'"
        )
        return {"error": str(missing), "links": []}
    try:
        return {"document": read_document(body, job["content_type"], job["url"]).to_json()}
    except NotAFeedError as error:
        return {"error": str(error), "links": error.links}
    except RecursionError:
        return {"error": "the document is nested too deeply", "links": []}
    except MemoryError:
        return {"error": "the document takes too much memory", "links": []}
    except Exception as error:  # of the parser: one document, and not the others
        return {
            "error": f"the document cannot be read: {type(error).__name__}: {error}",
            "links": [],
        }


if __name__ == "__main__":
    main(int(sys.argv[1]))

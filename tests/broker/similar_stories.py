"""Stories for tests of similar matches; and `python -m tests.broker.similar_stories FOLDER SEED`
publishes some for ever, until it is killed.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from xml.etree import ElementTree

import orjson

import tamis.cli
from tamis.broker.match_server import MatchServer
from tamis.broker.publishing import Publication
from tamis.events.json_source import JsonObjects

SAMPLES = Path(tamis.cli.__file__).parent / "samples" / "news"
FILLER = "harbour gravel violin seventeen copper lantern quietly orchard Tuesday mitten".split()


def real_stories() -> list[dict[str, str]]:
    """The stories of two sample feeds."""
    items = json.loads((SAMPLES / "cisco.json").read_bytes())["items"]
    found = [{"title": own["title"], "body": own["content_text"]} for own in items]
    rss = ElementTree.parse(SAMPLES / "microsoft.xml").getroot()
    texts = [(own.findtext("title"), own.findtext("description")) for own in rss.iter("item")]
    return found + [{"title": title, "body": body} for title, body in texts]


def retell(story: dict[str, str], draw: random.Random, share: float) -> dict[str, str]:
    """The story with a share of the words of its body replaced."""
    words = story["body"].split()
    for at in draw.sample(range(len(words)), round(len(words) * share)):
        words[at] = f"{draw.choice(FILLER)}{draw.randrange(10**6)}"
    return story | {"body": " ".join(words)}


def draw_events(draw: random.Random, stories: list[dict], n_events: int) -> list[dict]:
    """Stories, retold; some without text; each for one of two subscriptions, or for both."""
    found = []
    for _ in range(n_events):
        event = retell(draw.choice(stories), draw, draw.choice([0, 0, 0.05, 0.1, 0.3]))
        event = draw.choice([event, event, event, {"title": event["title"]}, {}])
        found.append(event | {"x": draw.choice([1, 1, 3]), "y": draw.choice([1, 1, 2])})
    return found


def publish(server: MatchServer, events: list[dict]) -> None:
    texts = [orjson.dumps(own) for own in events]
    server.publisher.publish(Publication(JsonObjects(texts), sum(map(len, texts)))).result()


def main(folder: str, seed: str) -> None:
    draw, stories = random.Random(int(seed)), real_stories()
    with MatchServer.open(folder) as server:
        while True:
            publish(server, draw_events(draw, stories, draw.choice([1, 2, 5])))
            print(server.archive.last_event, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Operators and keywords in live sets: the answers and bindings of the reference evaluator."""

from __future__ import annotations

import json
from random import Random

import pytest

import tamis
from tamis.language import Schema, check, parse
from tamis.live import LiveIndex, follow
from tamis.logic.evaluate import Missing, evaluate, solve
from tamis.operators.caller import OperatorLimits
from tests.effort import examples
from tests.live.places import by_hand, crash, step
from tests.live.worlds import KEYWORD_ATTRIBUTES, draw_query, draw_texts
from tests.operators.toys import Toys, random_event, random_subscription, true_answers

N_SUBSCRIPTIONS = 40
LIMITS = OperatorLimits(faults_in_a_row=10**9)  # the breaker stays closed


def live_life(open_live, texts: dict[str, str], draw: Random, n_steps: int, expect) -> None:
    """A random life; `expect` gets an index and the texts' names by id after each step."""
    held: dict[str, str] = {}
    live = open_live()
    for _ in range(n_steps):
        names = draw.sample([f"n{n}" for n in range(25)], draw.choice((1, 2, 8)))
        for name in names:
            text = draw.choice(list(texts))
            if name not in held:
                live.add(name, texts[text])
                held[name] = text
            elif draw.random() < 0.5:
                live.replace(name, texts[text])
                held[name] = text
            else:
                live.remove(name)
                del held[name]
        match draw.randrange(5):
            case 0:
                live.compact()
            case 1:
                step(live)
            case 2:
                live.close()
                live = open_live()
            case 3:
                crash(live)
                live = open_live()
        assert sorted(live) == sorted(held)
        expect(live, held)
        expect(live.snapshot(), held)
    live.close()


# ── operators ───────────────────────────────────────────────────────────────────────────────


class Operators:
    """Random subscriptions that call operators, and what the reference says of them."""

    def __init__(self, seed: int, missing: Missing) -> None:
        draw = Random(seed)
        self.toys, self.missing = Toys(), missing
        drawn = [random_subscription(draw, self.toys.schema) for _ in range(N_SUBSCRIPTIONS)]
        self.texts = {f"s{at}": text for at, (text, _) in enumerate(drawn)}
        self.conditions = {f"s{at}": condition for at, (_, condition) in enumerate(drawn)}
        self.events = [random_event(draw, at) for at in range(3)]

    def open(self, folder) -> LiveIndex:
        live = LiveIndex.open(
            folder,
            schema=Schema.of("a BIGINT, b STRING, flag BOOLEAN"),
            missing=self.missing,
            operators=self.toys.registry,
        )
        live.operators.limits = LIMITS
        return live

    def expect(self, index, held: dict[str, str]) -> None:
        for event in self.events:
            wanted = {}
            for name, text in held.items():
                condition = self.conditions[text]
                answers = true_answers(condition, event, self.toys.schema)
                found = solve(condition, event, answers, self.missing)
                if found is not None:
                    wanted[name] = found
            got = index.match_bindings(event)
            assert got == wanted
            assert sorted(index.match(event)) == sorted(wanted)
            assert sorted(index.match_lists([event]).to_pylist()[0]) == sorted(wanted)


@pytest.mark.parametrize("missing", Missing)
def test_random_lives_with_operators(missing, seed, tmp_path):
    for at in range(examples(2)):
        drawn = Operators(seed + at, missing)
        with by_hand():
            live_life(
                lambda at=at, drawn=drawn: drawn.open(tmp_path / f"{at}.live"),
                drawn.texts,
                Random(seed + at),
                15,
                drawn.expect,
            )


def test_operators_are_merged_published_and_followed(seed, tmp_path):
    drawn = Operators(seed, Missing.UNDEFINED)
    held = {f"n{at}": f"s{at}" for at in range(N_SUBSCRIPTIONS)}
    folder = tmp_path / "live"
    with drawn.open(folder) as live:
        live.add_many({name: drawn.texts[text] for name, text in held.items()})
        live.remove("n3")
        del held["n3"]
        live.compact()  # in another process, which does not have the operators
        assert len(live.view.engines) == 1
        drawn.expect(live, held)
        with follow(folder, operators=drawn.toys.registry, is_started=False) as follower:
            follower.operators.limits = LIMITS
            drawn.expect(follower, held)
        live.publish(tmp_path / "store")
    with tamis.open(tmp_path / "store", operators=drawn.toys.registry) as index:
        index.operators.limits = LIMITS
        drawn.expect(index, held)


def test_a_set_with_operators_needs_them(tmp_path, seed):
    drawn = Operators(seed, Missing.UNDEFINED)
    with by_hand(), drawn.open(tmp_path / "live") as live:
        live.add("s", "yes()")
        with pytest.raises(tamis.ExpressionError):
            live.add("t", "no_such_operator()")
    for open_without in (LiveIndex.open, follow):
        with by_hand(), pytest.raises(tamis.TamisError, match="yes"):
            open_without(tmp_path / "live")
    with by_hand(), drawn.open(tmp_path / "live") as live:
        assert live.match({"id": 1, "answers": {"yes": True}}) == ["s"]


# ── keywords ────────────────────────────────────────────────────────────────────────────────


class Keywords:
    """Random queries for words, and what the reference says of them."""

    schema = Schema.of(KEYWORD_ATTRIBUTES)

    def __init__(self, seed: int, missing: Missing) -> None:
        draw, self.missing = Random(seed), missing
        self.texts = {f"s{at}": draw_query(draw) for at in range(N_SUBSCRIPTIONS)}
        self.conditions = {
            name: check(parse(text), self.schema) for name, text in self.texts.items()
        }
        self.events = [draw_texts(draw) for _ in range(6)]

    def open(self, folder) -> LiveIndex:
        return LiveIndex.open(folder, schema=self.schema, missing=self.missing)

    def expect(self, index, held: dict[str, str]) -> None:
        lists = index.match_lists(self.events).to_pylist()
        for event, found in zip(self.events, lists, strict=True):
            wanted = [
                name
                for name, text in held.items()
                if evaluate(self.conditions[text], event, self.missing) is True
            ]
            assert sorted(found) == sorted(wanted)
            assert sorted(index.match(event)) == sorted(wanted)


@pytest.mark.parametrize("missing", Missing)
@pytest.mark.filterwarnings("ignore:.* missing in every event:tamis.TamisWarning")
def test_random_lives_with_keywords(missing, seed, tmp_path):
    for at in range(examples(2)):
        drawn = Keywords(seed + at, missing)
        with by_hand():
            live_life(
                lambda at=at, drawn=drawn: drawn.open(tmp_path / f"{at}.live"),
                drawn.texts,
                Random(seed + at),
                15,
                drawn.expect,
            )


def test_keywords_are_merged_in_another_process(seed, tmp_path):
    drawn = Keywords(seed, Missing.SATISFIES_NEGATION)
    held = {f"n{at}": f"s{at}" for at in range(N_SUBSCRIPTIONS)}
    with drawn.open(tmp_path / "live") as live:
        live.add_many({name: drawn.texts[text] for name, text in held.items()})
        live.remove("n5")
        del held["n5"]
        live.compact()
        drawn.expect(live, held)
    with drawn.open(tmp_path / "live") as live:
        drawn.expect(live, held)
        assert json.loads((tmp_path / "live" / "live.json").read_bytes())["missing"] == (
            Missing.SATISFIES_NEGATION.value
        )

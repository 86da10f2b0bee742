"""Random lives of a live index without a declared schema: the first use of an attribute decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import tamis
from tamis.errors import StoreError
from tamis.live import LiveIndex, follow
from tamis.live.deciders import hide_decider, hide_users
from tamis.match.index import Index
from tamis.subscriptions import Accepted, Replace, Subscribe
from tests.effort import examples
from tests.live.places import by_hand, crash, step

ATTRIBUTES = [f"a{at}" for at in range(8)]
VALUES = {"number": (1, 2), "string": ("x", "y"), "boolean": (True, False)}
N_STEPS = 80


def spell(attribute: str, value: object) -> str:
    return f"{attribute} = {str(value).upper() if isinstance(value, bool) else repr(value)}"


class Life:
    """A live index without a declared schema, and the types that its first subscriptions fix."""

    def __init__(self, folder: Path, draw: Random) -> None:
        self.folder, self.draw = folder, draw
        self.live = LiveIndex.open(folder)
        self.follower = follow(folder, is_started=False)
        self.types: dict[str, tuple[str, str]] = {}  # with the subscription that fixed each
        self.held: dict[str, Callable[[dict], bool]] = {}  # what each must say of an event

    def add(self, name: str) -> None:
        attribute, kind = self.draw.choice(ATTRIBUTES), self.draw.choice(list(VALUES))
        value = self.draw.choice(VALUES[kind])
        self.change(name, attribute, kind, spell(attribute, value), lambda e: e[attribute] == value)

    def add_what_is_never_true(self, name: str) -> None:
        """No test of the index needs the attribute."""
        attribute, kind = self.draw.choice(ATTRIBUTES), self.draw.choice(list(VALUES))
        texts = (spell(attribute, value) for value in VALUES[kind])
        self.change(name, attribute, kind, " AND ".join(texts), lambda _: False)

    def change(self, name: str, attribute: str, kind: str, text: str, says: Callable) -> None:
        change = self.live.replace if name in self.held else self.live.add
        if attribute not in self.types or self.types[attribute][0] == kind:
            change(name, text)
            self.held[name] = says
            self.types.setdefault(attribute, (kind, name))
        else:
            with pytest.raises(tamis.ExpressionError) as refused:
                change(name, text)
            assert refused.value.decider == self.types[attribute][1]
            assert f'subscription "{refused.value.decider}"' in refused.value.hint

    def compare(self, name: str) -> None:
        """This alone tells no type: without those who have fixed it, it could not be read."""
        kinds = {own: kind for own, (kind, _) in self.types.items()}
        pairs = [(a, b) for a in kinds for b in kinds if a < b and kinds[a] == kinds[b]]
        if pairs and name not in self.held:
            a, b = self.draw.choice(pairs)
            self.live.add(name, f"{a} = {b}")
            self.held[name] = lambda event: event[a] == event[b]

    def remove(self, _name: str) -> None:
        if self.held:
            gone = self.draw.choice(list(self.held))
            self.live.remove(gone)
            del self.held[gone]

    def reopen(self, _name: str) -> None:
        self.draw.choice((self.live.close, lambda: crash(self.live)))()
        self.live = LiveIndex.open(self.folder)

    def maintain(self, _name: str) -> None:
        self.draw.choice((lambda: step(self.live), self.live.compact))()

    def follow(self, _name: str) -> None:
        if self.draw.random() < 0.5:
            self.follower.close()
            self.follower = follow(self.folder, is_started=False)
        self.follower.refresh()
        self.expect_matches(self.follower)
        self.expect_matches(self.live.as_of(self.live.change))

    def expect_matches(self, index: Index) -> None:
        """Of one event with a value of each attribute that has a type."""
        event = {own: self.draw.choice(VALUES[kind]) for own, (kind, _) in self.types.items()}
        found = index.match(event)
        assert sorted(found) == sorted(name for name, says in self.held.items() if says(event))

    def close(self) -> None:
        self.follower.close()
        self.live.close()


@pytest.mark.parametrize("number", range(examples(3)))
def test_types_stay_as_they_were_fixed(tmp_path, number, seed):
    """Whoever fixed them may go; a contradiction names them."""
    draw = Random(f"{seed}/{number}")
    with by_hand():
        life = Life(tmp_path / "live", draw)
        for at in range(N_STEPS):
            acts = (life.add, life.add_what_is_never_true, life.compare, life.remove)
            seldom = (life.reopen, life.maintain, life.follow)
            (act,) = draw.choices((*acts, *seldom), (50, 10, 15, 25, 6, 6, 10))
            act(f"s{draw.randrange(at + 1) if draw.random() < 0.2 else at}")
            life.expect_matches(life.live)
        life.close()


def test_types_outlive_those_who_fixed_them(tmp_path):
    """The comparison alone does not tell what its attributes are."""
    folder, event = tmp_path / "live", {"price": 1, "limit": 2}
    with by_hand():
        live = LiveIndex.open(folder)
        live.add_many({"p": "price > 10", "l": "limit > 10", "both": "price < limit"})
        live.remove_many(["p", "l"])
        with follow(folder, is_started=False) as follower:
            assert follower.match(event) == ["both"]
        assert live.as_of(live.change).match(event) == ["both"]
        crash(live)
        live = LiveIndex.open(folder)
        assert live.match(event) == ["both"]
        live.store.backup(tmp_path / "other")
        live.close()
        # Where nothing remembers the types, they can be declared.
        with pytest.raises(StoreError, match="the type of price is not known") as raised:
            LiveIndex.open(tmp_path / "other")
        assert "with the schema" in raised.value.hint
        with LiveIndex.open(tmp_path / "other", schema="price NUMBER, limit NUMBER") as other:
            assert other.match(event) == ["both"]


def test_an_expression_that_is_never_true_fixes_types(tmp_path):
    """It must stay readable when its part is built again."""
    folder = tmp_path / "live"
    with by_hand():
        live = LiveIndex.open(folder)
        live.add("never", "x = 1 AND x = 2")
        with pytest.raises(tamis.ExpressionError, match='since subscription "never" was added'):
            live.add("other", "x = 'text'")
        live.add("y", "y = 1")
        live.compact()
        crash(live)
        with pytest.raises(tamis.InputError, match='subscription "never" contradicts the schema'):
            LiveIndex.open(folder, schema="x STRING, y NUMBER")
        with LiveIndex.open(folder, schema="x NUMBER, y NUMBER") as live:
            assert live.match({"x": 1, "y": 1}) == ["y"]


def test_what_is_refused_fixes_no_type(tmp_path):
    """A subscription is not read with the types of one that is refused for another reason."""
    with by_hand(), LiveIndex.open(tmp_path / "live") as live:
        live.add("there", "a = 1")
        over = Subscribe("over", "d = 1", valid_until="2001-01-01")
        for requests in (
            [Subscribe("there", "b = 1"), Subscribe("b", "b = 'x'")],
            [Replace("nobody", "c = 1"), Subscribe("c", "c = 'x'")],
            [over, Subscribe("d", "d = 'x'")],
            [Subscribe("there", "e = 1"), Subscribe("e", "e = 'x'"), Replace("e", "e = 'y'")],
        ):
            refused, *accepted = live.apply(requests)
            assert refused.error is None
            assert all(isinstance(own, Accepted) for own in accepted)
        assert live.match({"a": 0, "b": "x", "c": "x", "d": "x", "e": "y"}) == [*"bcde"]


def test_a_contradiction_names_three_users_and_their_number(tmp_path):
    """Of all parts, without those that are gone; not if only the decider uses the attribute."""
    with by_hand(), LiveIndex.open(tmp_path / "live") as live:
        live.add("first", "a = 1 AND b = 1")

        def hint(text: str) -> str:
            with pytest.raises(tamis.ExpressionError) as refused:
                live.add("wrong", text)
            (result,) = live.add_many({"wrong": text})
            assert result.error.hint == refused.value.hint
            assert refused.value.decider == "first"
            return refused.value.hint.partition("since ")[2]

        since = 'subscription "first" was added'
        assert hint("a = 'x'") == since
        live.add("second", "NOT a = 2")
        assert hint("a = 'x'") == f'{since}; now 2 subscriptions use it: "first", "second"'
        live.compact()
        live.add_many({f"s{n}": f"a = {n}" for n in range(9)})
        live.remove("second")
        users = '"first", "s0", "s1", …'
        assert hint("a = 'x'") == f"{since}; now 10 subscriptions use it: {users}"
        assert hint("b = 'x'") == since
        live.remove_many(["first", *(f"s{n}" for n in range(8))])
        assert hint("a = 'x'") == f'{since}; now 1 subscription uses it: "s8"'
        assert hint("b = 'x'") == f"{since}; now 0 subscriptions use it"


@pytest.mark.parametrize("first", ["first", "first; now 2 subscriptions use it", '"first"; now "'])
def test_what_a_reader_may_not_see_is_left_out(tmp_path, first):
    with by_hand(), LiveIndex.open(tmp_path / "live") as live:
        live.add_many({first: "a = 1", "second": "a = 2"})
        with pytest.raises(tamis.ExpressionError) as refused:
            live.replace("second", "a = 'x'")
    error = refused.value
    assert f'; now 2 subscriptions use it: "{first}", "second"' in error.hint
    hide_users(error)
    assert error.hint.endswith(f'since subscription "{first}" was added')
    hide_decider(error)
    assert "first" not in error.hint
    assert "that you cannot see" in error.hint

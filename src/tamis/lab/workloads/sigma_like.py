r"""Detection rules over process events, similar in form to the public Sigma rules but fully
synthetic.

A rule has twelve predicates on average; most have fewer. Four of five are ILIKE patterns, mostly
`%…%`: on `CommandLine`, a text of 100 to 300 characters, there are 15,000 distinct ones, each used
by some rule if there are enough rules. A rule is an AND of selections, and a selection is an OR
(or, for patterns, also an AND) of tests on one attribute; one rule in five has a NOT filter.

Command lines are built from the words of the patterns, so patterns also match by chance; a share of
the events is built so that one rule is certain to match.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.lab.workloads.draws import require
from tamis.lab.workloads.vocabulary import Vocabulary, draw_words

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA: Final = {
    "CommandLine": "string",
    "Image": "string",
    "OriginalFileName": "string",
    "ParentImage": "string",
    "ParentCommandLine": "string",
    "User": "string",
    "IntegrityLevel": "string",
    "EventID": "integer",
}
USERS: Final = tuple(f"CORP\\user{number}" for number in range(200))
INTEGRITY_LEVELS: Final = ("Low", "Medium", "High", "System")
EVENT_IDS: Final = (1, 3, 7, 8, 10, 11, 13, 22, 4688)
N_WORDS: Final = 3000
N_PROGRAMS: Final = 600
TYPICAL_PREDICATES: Final = 7  # half of the rules have at most this many
SPREAD: Final = 1.05  # of the logarithm of their number
# Attributes of the selections after the first one, which tests the command line.
SELECTIONS: Final = {
    "CommandLine": 0.12,
    "Image": 0.27,
    "ParentImage": 0.23,
    "ParentCommandLine": 0.06,
    "OriginalFileName": 0.2,
    "User": 0.12,
}


@dataclass(frozen=True, slots=True)
class SigmaLikeParams:
    """The numbers of rules and patterns, and the length of the texts."""

    n_expressions: int = 4000
    n_patterns: int = 15_000  # distinct ones on CommandLine
    most_predicates: int = 120
    text_length: tuple[int, int] = (100, 300)  # of CommandLine
    planted_share: float = 0.05  # of events that are built to match a rule
    seed: int = 1

    def __post_init__(self) -> None:
        require(self.n_patterns >= 1, f"n_patterns is {self.n_patterns}; at least 1")
        low, high = self.text_length
        require(20 <= low <= high, f"text_length is {low} to {high}; allowed: 20 or more, ordered")
        require(0 <= self.planted_share <= 1, f"planted_share is {self.planted_share}; 0 to 1")


class Rule(NamedTuple):
    """A rule's text, and values of attributes that make it match."""

    text: str
    pieces: dict[str, list[str]]


class SigmaLike:
    """Rules and events; equal parameters give equal workloads."""

    def __init__(self, params: SigmaLikeParams | None = None) -> None:
        self.params = params or SigmaLikeParams()
        rng = random.Random(f"{self.params.seed}/words")
        self._words = draw_words(rng, N_WORDS)
        vocabulary = Vocabulary(rng, self._words)
        self._programs = sorted({vocabulary.program() for _ in range(N_PROGRAMS)})
        self._patterns = draw_patterns(vocabulary, self.params.n_patterns)

    @property
    def schema(self) -> dict[str, str]:
        """The type of each attribute."""
        return dict(SCHEMA)

    @property
    def patterns(self) -> list[str]:
        """The texts that rules search for in `CommandLine`."""
        return list(self._patterns)

    # ── rules ──────────────────────────────────────────────────────────────────────────────

    def expressions(self, n: int | None = None) -> list[str]:
        """`n` rules as text, `n_expressions` by default."""
        return [rule.text for rule in self.rules(n)]

    def rules(self, n: int | None = None) -> list[Rule]:
        """The same rules, each with values that make it match."""
        writer = RuleWriter(self.params, self._patterns, self._programs)
        return [writer.write() for _ in range(self.params.n_expressions if n is None else n)]

    # ── events ─────────────────────────────────────────────────────────────────────────────

    def events(self, n: int) -> list[dict[str, Any]]:
        """Events as dictionaries."""
        rng = random.Random(f"{self.params.seed}/events")
        writer = EventWriter(self.params, Vocabulary(rng, self._words))
        rules = self.rules()
        events = []
        for _ in range(n):
            is_planted = rng.random() < self.params.planted_share and rules
            pieces = rng.choice(rules).pieces if is_planted else {}
            events.append(writer.write(rng.choice(self._programs), self._programs, pieces))
        return events

    def event_table(self, n: int) -> pa.Table:
        """The same events as a table."""
        import pyarrow as pa

        types = {"string": pa.string(), "integer": pa.int64()}
        schema = pa.schema([(name, types[type_]) for name, type_ in SCHEMA.items()])
        return pa.Table.from_pylist(self.events(n), schema=schema)


def draw_patterns(vocabulary: Vocabulary, n_patterns: int) -> list[str]:
    """Pieces of command lines, distinct when case is ignored."""
    found: dict[str, str] = {}
    while len(found) < n_patterns:
        piece = vocabulary.fragment()
        found.setdefault(piece.lower(), piece)
    return list(found.values())


class EventWriter:
    """Writes events one by one."""

    def __init__(self, params: SigmaLikeParams, vocabulary: Vocabulary) -> None:
        self.params = params
        self.vocabulary = vocabulary
        self.rng = vocabulary.rng

    def write(
        self, program: str, programs: list[str], pieces: dict[str, list[str]]
    ) -> dict[str, Any]:
        """An event of the program that contains the pieces."""
        rng = self.rng
        parent = rng.choice(programs)
        event: dict[str, Any] = {
            "CommandLine": self._command_line(program, pieces.get("CommandLine", [])),
            "Image": self.vocabulary.path(program),
            "OriginalFileName": program,
            "ParentImage": self.vocabulary.path(parent),
            "User": rng.choice(USERS),
            # No filter excludes processes of low integrity.
            "IntegrityLevel": INTEGRITY_LEVELS[0] if pieces else rng.choice(INTEGRITY_LEVELS),
            "EventID": rng.choice(EVENT_IDS),
        }
        if "ParentCommandLine" in pieces or rng.random() < 0.8:
            needed = pieces.get("ParentCommandLine", [])
            event["ParentCommandLine"] = self._command_line(parent, needed)
        texts = ("CommandLine", "ParentCommandLine")
        event.update({name: found[0] for name, found in pieces.items() if name not in texts})
        return event

    def _command_line(self, program: str, pieces: list[str]) -> str:
        """A text of the given length; longer only if the pieces require it."""
        # Case must be ignored.
        text = " ".join([program, *(piece.swapcase() for piece in pieces)])
        length = max(self.rng.randint(*self.params.text_length), len(text))
        while len(text) < length:
            text += " " + self.vocabulary.token()
        return text[:length].ljust(self.params.text_length[0], ".")


class RuleWriter:
    """Writes rules one by one, using every pattern once before any is reused."""

    def __init__(self, params: SigmaLikeParams, patterns: list[str], programs: list[str]) -> None:
        self.params = params
        self.rng = random.Random(f"{params.seed}/rules")
        self.patterns = patterns
        self.programs = programs
        self.unused = list(patterns)
        self.rng.shuffle(self.unused)

    def write(self) -> Rule:
        """The next rule."""
        n_left = self._draw_size()
        pieces: dict[str, list[str]] = {}
        parts = []
        if n_left >= 3 and self.rng.random() < 0.6:
            parts.append(self._program_selection(pieces))
            n_left -= 2
        has_filter = n_left >= 3 and self.rng.random() < 0.21
        n_left -= has_filter
        name = "CommandLine"
        while n_left > 0:
            n_tests = n_left if n_left <= 3 else self.rng.randint(2, n_left)
            parts.append(self._selection(name, n_tests, pieces))
            n_left -= n_tests
            name = self._draw_attribute(pieces)
        if has_filter:
            parts.append(f"NOT {self._filter()}")
        return Rule(" AND ".join(parts), pieces)

    def _draw_size(self) -> int:
        """The number of predicates: usually few, sometimes many."""
        drawn = round(TYPICAL_PREDICATES * math.exp(self.rng.gauss(0, SPREAD)))
        return max(2, min(drawn, self.params.most_predicates))

    def _program_selection(self, pieces: dict[str, list[str]]) -> str:
        """A test of the program by its path or its original name, with which most rules begin."""
        program = self.rng.choice(self.programs)
        pieces["Image"] = [f"C:\\Windows\\{program}"]
        path = ilike("Image", f"\\{program}", "%", "")
        return f"({path} OR OriginalFileName = {quote(program)})"

    def _draw_attribute(self, pieces: dict[str, list[str]]) -> str:
        """The attribute of the next selection; a command line may be tested twice."""
        free = [name for name in SELECTIONS if name not in pieces or name.endswith("CommandLine")]
        return self.rng.choices(free, [SELECTIONS[name] for name in free])[0]

    def _selection(self, name: str, n_tests: int, pieces: dict[str, list[str]]) -> str:
        tests, found = zip(*(self._test(name) for _ in range(n_tests)), strict=True)
        is_all = name.endswith("CommandLine") and n_tests <= 4 and self.rng.random() < 0.4
        pieces.setdefault(name, []).extend(found if is_all else found[:1])
        joined = (" AND " if is_all else " OR ").join(tests)
        return f"({joined})" if n_tests > 1 else joined

    def _test(self, name: str) -> tuple[str, str]:
        """A test of an attribute, and a value that satisfies it."""
        match name:
            case "CommandLine" | "ParentCommandLine":
                piece = self._pattern() if name == "CommandLine" else self.rng.choice(self.patterns)
                return ilike(name, piece, "%", "%"), piece
            case "Image" | "ParentImage":
                program = self.rng.choice(self.programs)
                if self.rng.random() < 0.15:
                    folder = f"C:\\Program Files\\{program.removesuffix('.exe')}\\"
                    return ilike(name, folder, "", "%"), folder + program
                return ilike(name, f"\\{program}", "%", ""), f"C:\\Windows\\{program}"
            case _:
                choices = self.programs if name == "OriginalFileName" else USERS
                value = self.rng.choice(choices)
                return f"{name} = {quote(value)}", value

    def _pattern(self) -> str:
        return self.unused.pop() if self.unused else self.rng.choice(self.patterns)

    def _filter(self) -> str:
        """A filter for known harmless processes."""
        levels = f"IntegrityLevel IN ({', '.join(map(quote, INTEGRITY_LEVELS[2:]))})"
        draw = self.rng.random()
        if draw < 0.4:
            return f"({ilike('ParentImage', self.rng.choice(self.programs), '%', '')} AND {levels})"
        if draw < 0.7:
            return f"(EventID = {self.rng.choice(EVENT_IDS)} AND User = {quote(USERS[0])})"
        return f"({ilike('CommandLine', self._pattern(), '', '%')} OR {levels})"


def ilike(name: str, text: str, before: str, after: str) -> str:
    """An ILIKE test in which `text` is literal."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"{name} ILIKE {quote(before + escaped + after)}"


def quote(text: str) -> str:
    """The text as a string literal of the language."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"

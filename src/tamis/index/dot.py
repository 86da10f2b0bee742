"""A picture of a subscription in the shared DAG: Graphviz text.

The subscription's nodes are drawn from its root down to its tests. A dashed box next to a node
names other subscriptions that share the node.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from tamis.index.describe import NodeDescriber
from tamis.index.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.index.contents import Contents

LABEL_WIDTH: Final = 60
NAMED: Final = 3  # subscriptions named next to a node
MAX_LOOKED_AT: Final = 10_000  # nodes above one node; the number that share it is then "at least"
MAX_DRAWN: Final = 500  # nodes of one picture


def to_dot(contents: Contents, ordinal: int, depth: int | None = None) -> str:
    """The neighbourhood of one subscription; `depth` limits the levels below the root."""
    return "\n".join(_Picture(contents, ordinal).draw(depth)) + "\n"


class _Picture:
    def __init__(self, contents: Contents, ordinal: int) -> None:
        self.contents = contents
        self.ordinal = ordinal
        self.graph = Graph(contents)
        self.describer = NodeDescriber(self.graph)

    def draw(self, depth: int | None) -> Iterator[str]:
        yield "digraph subscription {"
        yield "  rankdir=TB; node [fontname=Helvetica, fontsize=11]; edge [arrowsize=0.7];"
        yield f"  s [label={_quote(self._name(self.ordinal))}, shape=note, style=bold];"
        root = self.graph.root_of(self.ordinal)
        if root is None:
            is_always = self.ordinal in self.contents.roots.always.tolist()
            label = "TRUE: every event matches" if is_always else "FALSE: no event can match"
            yield f"  constant [label={_quote(label)}, shape=plaintext];"
            yield "  s -> constant;"
        else:
            yield f"  s -> n{root};"
            yield from self._draw_nodes(root, depth)
        yield "}"

    def _draw_nodes(self, root: int, depth: int | None) -> Iterator[str]:
        depths = {root: 0}
        pending = deque([root])
        n_drawn = 0
        while pending:
            node = pending.popleft()
            n_drawn += 1
            yield from self._draw_node(node)
            children = self.graph.children(node)
            if children and (n_drawn >= MAX_DRAWN or depths[node] == depth):
                yield f"  more{node} [label={_quote(f'{len(children)} below')}, shape=plaintext];"
                yield f"  n{node} -> more{node} [style=dotted];"
                continue
            for place, child in enumerate(children):
                yield f"  n{node} -> n{child}{self._edge_note(node, place)};"
                if child not in depths:
                    depths[child] = depths[node] + 1
                    pending.append(child)

    def _draw_node(self, node: int) -> Iterator[str]:
        if self.graph.is_leaf(node):
            label = self.describer.label(node, LABEL_WIDTH)
            yield f"  n{node} [label={_quote(label)}, shape=box];"
        else:
            yield f"  n{node} [label={_quote(self.graph.operator(node))}, shape=ellipse];"
        others, is_all = self._sharers(node)
        if others:
            label = _quote(self._list(others, is_all))
            yield f"  o{node} [label={label}, shape=box, style=dashed];"
            yield f"  o{node} -> n{node} [style=dashed];"

    def _edge_note(self, node: int, place: int) -> str:
        if self.graph.operator(node) not in ("XOR", "XNOR"):
            return ""
        return f' [label="{"is false" if place % 2 else "is true"}"]'

    def _sharers(self, node: int) -> tuple[list[int], bool]:
        """Other subscriptions that contain the node, and whether these are all."""
        found: dict[int, None] = {}
        seen = {node}
        pending = deque([node])
        while pending and len(seen) <= MAX_LOOKED_AT:
            at = pending.popleft()
            found.update(dict.fromkeys(self.graph.subscriptions_at(at)))
            above = [parent for parent in self.graph.parents(at) if parent not in seen]
            seen.update(above)
            pending.extend(above)
        found.pop(self.ordinal, None)
        return sorted(found), not pending

    def _list(self, ordinals: list[int], is_all: bool) -> str:
        names = [self._name(ordinal) for ordinal in ordinals[:NAMED]]
        n_more = len(ordinals) - len(names)
        if n_more or not is_all:
            names.append(f"{'' if is_all else 'at least '}{n_more:,} more")
        return "also in " + ", ".join(names)

    def _name(self, ordinal: int) -> str:
        name: str = self.contents.ids[ordinal].as_py()
        return name if len(name) <= LABEL_WIDTH else name[: LABEL_WIDTH - 1] + "…"


def _quote(text: str) -> str:
    """The text as a Graphviz string, on one line."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

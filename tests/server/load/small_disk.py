"""A server on a disk that becomes full, and read-only: `unshare -rm python -m … FOLDER SEED`.

The disk is a small tmpfs that only this process and its children see.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from httpx2 import Client, Response

from tests.server.load.consumers import PageConsumer
from tests.server.load.oracle import Oracle
from tests.server.load.scene import KEPT, Scene
from tests.server.load.workers import LONG, KeyedPublisher, Publisher, Subscriber, expect_answer
from tests.waiting import wait_until

SIZE = "48m"
BALLAST = ".ballast"
N_STEPS = 20
MOST_TRIES = 10_000
NO_LIMIT = {"TAMIS_OPERATIONS_LEAST_FREE_SPACE": "0"}  # nothing is done before the disk is full


class CarefulPublisher(Publisher):
    """Remembers what was refused: nothing of it may be there."""

    def __init__(self, name: str, seed: int) -> None:
        super().__init__(name, seed, most_events=100)
        self.refused: set[str] = set()

    def try_once(self, client: Client) -> Response:
        """Publish; returns the answer."""
        events = self.draw_events()
        answer = self.send(client, events)
        if answer.status_code == 200:
            self.remember(events, answer.json())
        else:
            self.refused |= {own["name"] for own in events}
        return answer

    def expect(self, oracle: Oracle) -> None:
        super().expect(oracle)
        held = {oracle.content(own.number)["name"] for own in oracle.events}
        assert self.refused
        assert not self.refused & held


def mount(disk: Path, *options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(disk)], check=True)


def fill(disk: Path) -> None:
    """Take all space that is left."""
    with (disk / BALLAST).open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


def expect_refusal(answer: Response) -> None:
    """A clear error."""
    problem = expect_answer(answer, 503)
    assert problem["code"] == "store-unavailable", problem
    assert "No space left" in problem["detail"] or "disk is full" in problem["detail"], problem
    assert problem["hint"], problem


def use_full_disk(scene: Scene, publisher: CarefulPublisher) -> list[str]:
    """What can be done is done, everything else is refused; returns refused subscriptions."""
    refused = []
    with scene.client() as client:
        answers = (publisher.try_once(client) for _ in range(MOST_TRIES))
        expect_refusal(next(own for own in answers if own.status_code != 200))
        for at in range(MOST_TRIES):
            name = f"late-{at}"
            asked = {"id": name, "expression": "a = 1" + " OR a = 1" * 500, "lease": LONG}
            answer = client.post("/v1/subscriptions", json=asked)
            if answer.status_code != 201:
                expect_refusal(answer)
                refused.append(name)
                break
        wait_until(lambda: client.get("/readyz").status_code == 503, "the server is not ready")
        problem = expect_answer(client.get("/readyz"), 503)
        assert any("full" in own or "No space" in own for own in problem["reasons"]), problem
        expect_answer(client.get("/healthz"))
        expect_answer(client.get(f"/v1/subscriptions/{KEPT[0]}/matches?after=0"))
        found = expect_answer(client.post("/v1/match", json={"event": {"bell": True}}))
        assert KEPT[0] in str(found)
        expect_answer(client.get(f"/v1/subscriptions/{refused[0]}"), 404)
    return refused


def work(scene: Scene) -> None:
    """Let everybody do some steps."""
    before = {own.name: own.n_steps for own in scene.actors}
    scene.start_work()
    wait_until(
        lambda: all(own.error or own.n_steps - before[own.name] > N_STEPS for own in scene.actors),
        "everybody has worked",
    )


def expect_no_start(scene: Scene, what: str) -> None:
    """The server says why it does not start."""
    with pytest.raises(AssertionError, match=what) as raised:
        scene.open()
    assert "Traceback" not in str(raised.value)


def main(folder: Path, seed: int) -> None:
    disk = folder / "server"
    disk.mkdir(parents=True)
    mount(disk, "-o", f"size={SIZE}")
    with Scene(disk, seed, **NO_LIMIT) as scene:
        careful = CarefulPublisher("careful", seed)
        scene.open()
        scene.prepare()
        scene.actors += [careful, KeyedPublisher("keyed", seed), Subscriber("ann", seed)]
        work(scene)
        scene.stop_actors()
        fill(disk)
        refused = use_full_disk(scene, careful)
        scene.kill_under_load()
        try:
            scene.open()  # without space, it starts or says why not
        except AssertionError as error:
            assert "No space left" in str(error) or "full" in str(error), error  # noqa: PT017
        else:
            scene.kill()
        (disk / BALLAST).unlink()
        scene.open()
        scene.consumers += [PageConsumer("pages", seed, *scene.mailbox(KEPT[0]))]
        work(scene)
        oracle = scene.finish()
        assert not {own.subscription_id for own in oracle.changes} & set(refused)
        mount(disk, "-o", "remount,ro")
        expect_no_start(scene, "Read-only file system")
        mount(disk, "-o", "remount,rw")
        scene.open()
        scene.close()
        assert len(Oracle(disk).events) == len(oracle.events)
    print("full and read-only")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

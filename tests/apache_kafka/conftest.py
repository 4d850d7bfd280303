from collections.abc import Iterator
from pathlib import Path

import pytest
from once_world import World, new_world

from servers.broker import BrokerServer


@pytest.fixture
def world(tmp_path: Path, apache_kafka: BrokerServer) -> Iterator[World]:
    made = new_world(tmp_path, apache_kafka.bootstrap)
    made.create_topics()
    yield made
    made.close()

"""The client library's mock cluster with its faults in reach: refusals, slowness, elections.

It takes transactional requests and keeps none of their promises: records of an aborted transaction
are seen, old producers commit, the committed position is never told.
"""

import ctypes
from enum import IntEnum
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError

_PRODUCER = 0
_BROKER = 1
_TEXT_MAX = 512


class Request(IntEnum):
    """Kafka's requests by their number."""

    PRODUCE = 0
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS = 24
    ADD_OFFSETS = 25
    END_TRANSACTION = 26
    COMMIT_OFFSETS = 28


class MockCluster:
    """Brokers on free ports, numbered from 1; ``close`` ends them."""

    def __init__(self, brokers: int = 1) -> None:
        self._library = _library()
        error = ctypes.create_string_buffer(_TEXT_MAX)
        configuration = self._library.rd_kafka_conf_new()
        self._library.rd_kafka_conf_set(
            configuration, b"bootstrap.servers", b"127.0.0.1:9", error, _TEXT_MAX
        )
        self._library.rd_kafka_conf_set(configuration, b"log_level", b"0", error, _TEXT_MAX)
        self._host = self._library.rd_kafka_new(_PRODUCER, configuration, error, _TEXT_MAX)
        assert self._host, error.value.decode()
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._host, brokers)
        addresses: bytes = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster)
        self.bootstrap = addresses.decode()

    def create(self, topic: str, partitions: int) -> None:
        self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1)

    def answer_next(self, request: Request, *codes: int) -> None:
        """What the next requests of a kind are answered; ``NO_ERROR`` lets one pass."""
        self._library.rd_kafka_mock_push_request_errors(
            self._cluster,
            ctypes.c_int16(request),
            ctypes.c_size_t(len(codes)),
            *(ctypes.c_int(code) for code in codes),
        )

    def answer_as_ever(self, request: Request) -> None:
        self._library.rd_kafka_mock_clear_request_errors(self._cluster, int(request))

    def answer_next_produce_requests(self, *codes: int) -> None:
        self.answer_next(Request.PRODUCE, *codes)

    def elect(self, topic: str, partition: int, broker: int) -> None:
        """Another broker leads the partition from now on."""
        self._library.rd_kafka_mock_partition_set_leader(
            self._cluster, topic.encode(), partition, broker
        )

    def coordinate(self, kind: str, key: str, broker: int) -> None:
        """Another broker looks after that ``transaction`` or ``group``."""
        self._library.rd_kafka_mock_coordinator_set(
            self._cluster, kind.encode(), key.encode(), broker
        )

    def listen(self) -> None:
        """Remember from now on what is asked."""
        self._library.rd_kafka_mock_start_request_tracking(self._cluster)

    def asked(self, request: Request) -> int:
        """How many requests of the kind came since ``listen``."""
        count = ctypes.c_size_t()
        found = self._library.rd_kafka_mock_get_requests(self._cluster, ctypes.byref(count))
        kinds = [self._library.rd_kafka_mock_request_api_key(found[n]) for n in range(count.value)]
        self._library.rd_kafka_mock_request_destroy_array(found, count)
        return kinds.count(request)

    def take_time(self, round_trip_ms: int, broker: int = _BROKER) -> None:
        self._library.rd_kafka_mock_broker_set_rtt(self._cluster, broker, round_trip_ms)

    def go_down(self) -> None:
        self._library.rd_kafka_mock_broker_set_down(self._cluster, _BROKER)

    def come_up(self) -> None:
        self._library.rd_kafka_mock_broker_set_up(self._cluster, _BROKER)

    def close(self) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._host)


NO_ERROR = KafkaError.NO_ERROR
TOO_LARGE = KafkaError.MSG_SIZE_TOO_LARGE
NOT_LEADER = KafkaError.NOT_LEADER_FOR_PARTITION
NOT_ALLOWED = KafkaError.TOPIC_AUTHORIZATION_FAILED


def _library() -> Any:
    """The very library that the Python client has loaded."""
    package = Path(confluent_kafka.__file__).parent
    [file] = (package.parent / "confluent_kafka.libs").glob("librdkafka*")
    library = ctypes.CDLL(str(file))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "rd_kafka_conf_new": (pointer, []),
        "rd_kafka_conf_set": (ctypes.c_int, [pointer, text, text, text, ctypes.c_size_t]),
        "rd_kafka_new": (pointer, [ctypes.c_int, pointer, text, ctypes.c_size_t]),
        "rd_kafka_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_new": (pointer, [pointer, ctypes.c_int]),
        "rd_kafka_mock_cluster_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_bootstraps": (text, [pointer]),
        "rd_kafka_mock_topic_create": (ctypes.c_int, [pointer, text, ctypes.c_int, ctypes.c_int]),
        "rd_kafka_mock_clear_request_errors": (None, [pointer, ctypes.c_int16]),
        "rd_kafka_mock_partition_set_leader": (
            ctypes.c_int,
            [pointer, text, ctypes.c_int32, ctypes.c_int32],
        ),
        "rd_kafka_mock_coordinator_set": (ctypes.c_int, [pointer, text, text, ctypes.c_int32]),
        "rd_kafka_mock_start_request_tracking": (None, [pointer]),
        "rd_kafka_mock_get_requests": (
            ctypes.POINTER(pointer),
            [pointer, ctypes.POINTER(ctypes.c_size_t)],
        ),
        "rd_kafka_mock_request_api_key": (ctypes.c_int16, [pointer]),
        "rd_kafka_mock_request_destroy_array": (None, [ctypes.POINTER(pointer), ctypes.c_size_t]),
        "rd_kafka_mock_broker_set_rtt": (ctypes.c_int, [pointer, ctypes.c_int32, ctypes.c_int]),
        "rd_kafka_mock_broker_set_down": (ctypes.c_int, [pointer, ctypes.c_int32]),
        "rd_kafka_mock_broker_set_up": (ctypes.c_int, [pointer, ctypes.c_int32]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    # Variadic: the fixed part only.
    library.rd_kafka_mock_push_request_errors.argtypes = [
        pointer,
        ctypes.c_int16,
        ctypes.c_size_t,
    ]
    return library

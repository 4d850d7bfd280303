"""The client library's mock cluster with its faults in reach: refusals, slowness, outages."""

import ctypes
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError

_PRODUCER = 0
_PRODUCE_REQUEST = 0
_BROKER = 1
_TEXT_MAX = 512


class MockCluster:
    """One broker on a free port; ``close`` ends it."""

    def __init__(self) -> None:
        self._library = _library()
        error = ctypes.create_string_buffer(_TEXT_MAX)
        configuration = self._library.rd_kafka_conf_new()
        self._library.rd_kafka_conf_set(
            configuration, b"bootstrap.servers", b"127.0.0.1:9", error, _TEXT_MAX
        )
        self._library.rd_kafka_conf_set(configuration, b"log_level", b"0", error, _TEXT_MAX)
        self._host = self._library.rd_kafka_new(_PRODUCER, configuration, error, _TEXT_MAX)
        assert self._host, error.value.decode()
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._host, 1)
        addresses: bytes = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster)
        self.bootstrap = addresses.decode()

    def create(self, topic: str, partitions: int) -> None:
        self._library.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1)

    def answer_next_produce_requests(self, *codes: int) -> None:
        """What the next produce requests are answered; ``NO_ERROR`` lets one pass."""
        self._library.rd_kafka_mock_push_request_errors(
            self._cluster,
            ctypes.c_int16(_PRODUCE_REQUEST),
            ctypes.c_size_t(len(codes)),
            *(ctypes.c_int(code) for code in codes),
        )

    def take_time(self, round_trip_ms: int) -> None:
        self._library.rd_kafka_mock_broker_set_rtt(self._cluster, _BROKER, round_trip_ms)

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

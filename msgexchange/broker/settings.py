"""How the client is configured, and what a site may not undo (spec 4.2, producer rules)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from confluent_kafka import KafkaException, Producer

from msgexchange.broker.errors import error_of

Setting: TypeAlias = str | int | float | bool
ClientSettings: TypeAlias = Mapping[str, Setting]
"""Further settings by the client's own names, such as ``security.protocol``."""

LOGGER: Final = logging.getLogger("msgexchange.broker.client")
"""Where the client's own messages go, from the thread that polls it."""

_ALL_THAT_KEEP_A_KEY_TOGETHER: Final = frozenset(
    {"consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"}
)

_ONLY: Final[Mapping[str, frozenset[str]]] = {
    "acks": frozenset({"all", "-1"}),
    "request.required.acks": frozenset({"all", "-1"}),
    "enable.idempotence": frozenset({"true", "1"}),
    "enable.gapless.guarantee": frozenset({"true", "1"}),
    "max.in.flight": frozenset("12345"),
    "max.in.flight.requests.per.connection": frozenset("12345"),
    "delivery.report.only.error": frozenset({"false", "0"}),
    # Another partitioner spreads one flight's records over partitions: no order any more.
    "partitioner": _ALL_THAT_KEEP_A_KEY_TOGETHER,
    "queuing.strategy": frozenset({"fifo"}),
    "isolation.level": frozenset({"read_committed"}),
    "enable.auto.commit": frozenset({"false", "0"}),
}
"""Settings with the only values that keep the promises."""

_NEVER: Final = frozenset(
    {
        # set by msgexchange's own settings, inside bounds
        *("bootstrap.servers", "metadata.broker.list"),
        *("message.timeout.ms", "delivery.timeout.ms", "message.max.bytes"),
        *("queue.buffering.max.messages", "queue.buffering.max.kbytes"),
        *("retries", "message.send.max.retries"),
        # not the site's to name
        *("transactional.id", "transaction.timeout.ms", "default.topic.config", "group.id"),
        # code
        *("error_cb", "throttle_cb", "stats_cb", "logger", "on_delivery", "dr_cb", "dr_msg_cb"),
        *("partitioner_cb", "plugin.library.paths"),
    }
)
TRANSACTION_TIMEOUT_S: Final = 15.0
"""After so long the broker ends a transaction that nobody ended (spec 4.2)."""

_INSTEAD: Final[Mapping[str, str]] = {
    "bootstrap.servers": "set kafka.bootstrap",
    "metadata.broker.list": "set kafka.bootstrap",
    "message.timeout.ms": "set kafka.message-timeout",
    "delivery.timeout.ms": "set kafka.message-timeout",
    "transactional.id": "leave it out: kafka.prefix is in its name",
    "retries": "leave it out: it is bounded by kafka.message-timeout",
    "message.send.max.retries": "leave it out: it is bounded by kafka.message-timeout",
}

_TEST_PREFIX: Final = "test."

_TIMEOUTS: Final = frozenset({"request.timeout.ms", "socket.timeout.ms"})
_TIMEOUT_MS: Final = range(10, 60_001)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A setting that would weaken the client or is not the site's, and what to do about it."""

    name: str
    what: str
    fix: str = "leave it out"


def refusals(settings: ClientSettings) -> list[Refusal]:
    """By name, in order."""
    found = (_refusal(name, settings[name]) for name in sorted(settings))
    return [refusal for refusal in found if refusal is not None]


def _refusal(name: str, value: Setting) -> Refusal | None:
    # The client takes topic settings under "topic." too.
    plain = name.strip().lower().removeprefix("topic.")
    if plain in _NEVER or plain.startswith(_TEST_PREFIX):
        return Refusal(name, "is not to be set here", _INSTEAD.get(plain, "leave it out"))
    if plain in _TIMEOUTS and not (str(value).isdigit() and int(value) in _TIMEOUT_MS):
        bounds = f"{_TIMEOUT_MS.start} to {_TIMEOUT_MS.stop - 1}"
        return Refusal(name, f"weakens the producer: it must be {bounds}")
    if plain in _ONLY and str(value).strip().lower() not in _ONLY[plain]:
        allowed = " or ".join(sorted(_ONLY[plain]))
        return Refusal(name, f"weakens the producer: it must be {allowed}")
    return None


def unknown_to_client(settings: ClientSettings) -> str | None:
    """What the client says to settings it does not know or cannot use; it connects nowhere."""
    try:
        Producer(producer_config("127.0.0.1:9", settings, ProducerBounds()), logger=LOGGER)
    except KafkaException as exception:
        return error_of(exception).str()
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerBounds:
    """What a producer waits for and holds at most.

    ``message_timeout_s``: until a record is given up; ``round_trip_timeout_s``: one request;
    ``record_bytes_max``: the largest record the client takes (the topic's limit is checked at
    start); ``queue_bytes_max``, ``queue_records_max``: what waits in the client.
    """

    message_timeout_s: float = 10.0
    round_trip_timeout_s: float = 5.0
    record_bytes_max: int = 1_000_000
    queue_records_max: int = 10_000
    queue_bytes_max: int = 64 << 20
    linger_s: float = 0.001


def client_config(bootstrap: str, settings: ClientSettings) -> dict[str, Any]:
    """What every client starts from. ``ValueError`` names the settings that are refused."""
    refused = ", ".join(refusal.name for refusal in refusals(settings))
    if refused:
        raise ValueError(
            f"kafka.client: {refused} may not be set; they weaken the producer or are "
            "set by msgexchange itself: leave them out"
        )
    return {
        "client.id": "msgexchange",
        # A broker that is back is found within a second, not ten.
        "reconnect.backoff.max.ms": 1000,
        "socket.keepalive.enable": True,
        # Only errors: the client warns of each lost connection and of settings it is given here.
        "log_level": 3,
        **settings,
        "bootstrap.servers": bootstrap,
    }


def producer_config(
    bootstrap: str, settings: ClientSettings, bounds: ProducerBounds
) -> dict[str, Any]:
    """An ordered, idempotent producer; nothing here can be undone by ``settings``."""
    return {
        # One request in flight: a batch that must be sent again is never overtaken, not even on a
        # broker that does not check sequence numbers.
        "max.in.flight": 1,
        "linger.ms": bounds.linger_s * 1000,
        "request.timeout.ms": int(bounds.round_trip_timeout_s * 1000),
        "socket.timeout.ms": int(bounds.round_trip_timeout_s * 1000) + 1000,
        **client_config(bootstrap, settings),
        "acks": "all",
        "enable.idempotence": True,
        # A refused batch would otherwise be stepped over and its successors sent; see producer.
        "enable.gapless.guarantee": True,
        # The wait for a window is ours to end, all records at once. Were the client to give up one
        # record by itself, those behind it would go out past it: so its own timeout comes later.
        "message.timeout.ms": int(bounds.message_timeout_s * 2000),
        "message.max.bytes": bounds.record_bytes_max,
        "queue.buffering.max.messages": bounds.queue_records_max,
        "queue.buffering.max.kbytes": bounds.queue_bytes_max >> 10,
    }


def transaction_config(
    bootstrap: str, settings: ClientSettings, bounds: ProducerBounds, *, name: str
) -> dict[str, Any]:
    """A producer whose windows are transactions; ``name`` tells it from every other one's.

    A record is given up before its transaction expires at the broker, so that the client aborts
    instead of being shut out. ``ValueError`` where the bounds do not allow that.
    """
    if bounds.message_timeout_s >= TRANSACTION_TIMEOUT_S:
        raise ValueError(
            f"kafka.message-timeout must be below the transaction's {TRANSACTION_TIMEOUT_S:g} s"
        )
    config = producer_config(bootstrap, settings, bounds)
    # A transaction has no gaps: a record that fails takes the whole of it along.
    del config["enable.gapless.guarantee"]
    return config | {
        "transactional.id": name,
        "transaction.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
        "message.timeout.ms": int(bounds.message_timeout_s * 1000),
    }

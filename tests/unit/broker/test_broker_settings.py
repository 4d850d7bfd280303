"""What a site may add to the Kafka client's settings, and what it may not undo (spec 4.2)."""

import pytest

from msgexchange.broker.settings import (
    ClientSettings,
    ProducerBounds,
    Setting,
    client_config,
    producer_config,
    refusals,
    unknown_to_client,
)


def names(settings: ClientSettings) -> list[str]:
    return [refusal.name for refusal in refusals(settings)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acks", 1),
        ("acks", "0"),
        ("request.required.acks", 1),
        ("topic.acks", 1),
        ("enable.idempotence", False),
        ("ENABLE.IDEMPOTENCE", "false"),
        ("enable.gapless.guarantee", "false"),
        ("max.in.flight", 6),
        ("max.in.flight.requests.per.connection", 1000),
        ("transactional.id", "mine"),
        ("message.timeout.ms", 1),
        ("delivery.timeout.ms", 0),
        ("request.timeout.ms", 5),
        ("socket.timeout.ms", 300_000),
        ("socket.timeout.ms", "soon"),
        ("retries", 0),
        ("message.send.max.retries", 0),
        ("partitioner", "random"),
        ("queuing.strategy", "lifo"),
        ("bootstrap.servers", "elsewhere:9092"),
        ("isolation.level", "read_uncommitted"),
        ("test.mock.num.brokers", 1),
        ("plugin.library.paths", "x.so"),
        ("default.topic.config", "x"),
    ],
)
def test_a_setting_that_weakens_the_producer_is_refused_by_name(name: str, value: Setting) -> None:
    assert names({name: value, "compression.type": "lz4"}) == [name]
    with pytest.raises(ValueError, match=name):
        client_config("127.0.0.1:9092", {name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acks", "all"),
        ("acks", -1),
        ("enable.idempotence", True),
        ("max.in.flight", 5),
        ("socket.timeout.ms", 3000),
        ("partitioner", "murmur2_random"),
        ("security.protocol", "ssl"),
        ("sasl.password", "secret"),
        ("compression.type", "lz4"),
        ("linger.ms", 20),
    ],
)
def test_a_setting_that_weakens_nothing_is_taken(name: str, value: Setting) -> None:
    assert refusals({name: value}) == []
    assert client_config("127.0.0.1:9092", {name: value})[name] == value


def test_every_refused_setting_is_named_at_once() -> None:
    assert names({"retries": 0, "acks": 1}) == ["acks", "retries"]


def test_a_refusal_says_what_is_allowed_or_what_to_set_instead() -> None:
    [acks, servers, timeout] = refusals(
        {"acks": 1, "socket.timeout.ms": 0, "bootstrap.servers": "k:9092"}
    )
    assert acks.what == "weakens the producer: it must be -1 or all"
    assert timeout.what == "weakens the producer: it must be 10 to 60000"
    assert servers.fix == "set kafka.bootstrap"


def test_what_the_client_does_not_know_is_told_before_it_connects() -> None:
    assert unknown_to_client({"linger.ms": 5, "compression.type": "lz4"}) is None
    assert "no.such.setting" in (unknown_to_client({"no.such.setting": 1}) or "")
    assert "pressed" in (unknown_to_client({"compression.type": "pressed"}) or "")


def test_the_producer_keeps_its_promises_whatever_the_site_adds() -> None:
    bounds = ProducerBounds(message_timeout_s=3)
    config = producer_config("127.0.0.1:9092", {"linger.ms": 20, "acks": "-1"}, bounds)
    assert config["acks"] == "all"
    assert config["enable.idempotence"] is True
    assert config["enable.gapless.guarantee"] is True
    assert config["max.in.flight"] == 1
    assert config["linger.ms"] == 20
    assert config["message.timeout.ms"] > bounds.message_timeout_s * 1000

"""Reads an airport's message mailbox, keeps one authoritative state per flight, publishes to Kafka."""

__version__ = "0.1.0"

"""An airport's mailbox in, one authoritative state per flight, every change out to Kafka."""

__version__ = "0.1.0"

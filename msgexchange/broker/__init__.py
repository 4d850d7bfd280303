"""The Kafka-protocol broker: an ordered producer, topics, reading back, one in the process."""

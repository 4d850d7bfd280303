"""Servers and builders every kind of test may ask for."""

pytest_plugins = [
    "servers.mariadb",
    "servers.broker",
    "servers.apache_kafka",
    "servers.postgres",
    "servers.production",
    "servers.publishing",
    "servers.stores",
    "servers.airport",
]

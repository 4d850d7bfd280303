"""Alembic environment and published migrations; run through ``msgexchange.store.schema``."""

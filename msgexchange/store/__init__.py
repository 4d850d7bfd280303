"""The own database: one authoritative state, inbox, outbox (spec 2.3); SQLAlchemy Core only."""

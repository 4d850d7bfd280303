"""Deterministic simulation: the real steps in a world of one thread and one seed (spec 7.3)."""

"""Measurements on real servers, each beside the least that the same work costs there (spec 7.5)."""

"""Published migrations: never edited, and independent of ``tables.py``."""

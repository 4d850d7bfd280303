"""The core: what becomes of a message on its way. Pure functions on frozen values."""

"""The core: what a flight is and what a message does to it. Pure functions on frozen values."""

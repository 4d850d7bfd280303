"""The core: message text to values, values to event bytes; names come from the catalogue."""

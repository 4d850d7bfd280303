"""Use cases: each one function or step, one visible transaction; no driver, no thread, no clock."""

"""What the system tells of itself: log lines, metrics, alerts. Never blocks, never fails work."""

"""The demo's feed: one real published day of departures, told as mailbox messages."""

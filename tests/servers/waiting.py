"""Real servers, processes and threads are waited for in real time."""

import time


def sleep(seconds: float) -> None:
    time.sleep(seconds)

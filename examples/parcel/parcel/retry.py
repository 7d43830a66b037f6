"""Try a carrier's API again when it is busy."""

import random
import time

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 30.0


def backoff_delay(attempt: int) -> float:
    """Seconds to wait before `attempt`: doubles each time, with jitter, up to a ceiling."""
    delay = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** (attempt - 1))
    return delay * random.uniform(0.5, 1.0)


def call_with_retry(send, attempts: int = 5):
    for attempt in range(1, attempts + 1):
        try:
            return send()
        except ConnectionError:
            if attempt == attempts:
                raise
            time.sleep(backoff_delay(attempt))

"""Where a parcel is."""

from parcel.retry import call_with_retry

STATES = ("announced", "collected", "in transit", "delivered", "returned")


class Tracker:
    def __init__(self, carrier):
        self.carrier = carrier

    def state(self, number: str) -> str:
        """Ask the carrier, again where it is busy; an unknown state is an error, not a guess."""
        state = call_with_retry(lambda: self.carrier.lookup(number))
        if state not in STATES:
            raise ValueError(f"carrier answered with an unknown state: {state!r}")
        return state

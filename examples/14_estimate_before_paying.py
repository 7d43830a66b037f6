"""What may a question cost? Nothing is sent, and no key is needed."""

from pathlib import Path

from rlm_rag import RLM, Limits

HERE = Path(__file__).parent

# The price, in dollars a million tokens in and out, is known for most models; here it is given.
limits = Limits(calls=20, usd=0.10)
rlm = RLM("openai/gpt-5-mini", price="0.25/2", strategy="rlm", limits=limits)
estimate = rlm.estimate(HERE / "parcel", "Where is retry backoff computed?")
for name, spend in (("likely", estimate.likely), ("high", estimate.high)):
    print(f"{name}: {spend.calls} calls, ${spend.usd:.2f}")

# Prints:
# likely: 11 calls, $0.01
# high: 12 calls, $0.10

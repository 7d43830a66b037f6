"""Sub-calls: what they cost beside others' tools, in large batches, and under rate limits."""

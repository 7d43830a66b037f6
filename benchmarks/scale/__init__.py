"""A corpus held whole beside the same in shards on a Ray cluster of this machine."""

"""A corpus spread over the machines of a Ray cluster."""

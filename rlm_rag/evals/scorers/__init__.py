"""The published rules of benchmarks, each a pure function."""

"""The runner of the benchmarks."""

"""The parts of the package, which shows their names."""

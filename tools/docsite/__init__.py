"""The documentation site, made from the package as it runs."""

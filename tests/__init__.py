"""All tests: a package, so that those on a real cluster can share its code."""

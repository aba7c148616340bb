"""Data in row chunks; a package, so that one cluster serves all of its tests and is closed after the last of them."""

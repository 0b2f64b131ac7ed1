"""A platform of the tests' own: a timeline of posts by id, on loopback."""

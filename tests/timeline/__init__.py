"""A platform that exists only for tests: timelines of posts with ids, on loopback."""

"""A queue of targets in Redis, which any number of workers on any number of machines take from."""

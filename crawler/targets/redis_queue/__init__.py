"""A queue of targets in Redis that any number of workers on any number of machines can share."""

"""A queue of targets in Redis, shared by any number of workers on any number of machines."""

"""The event loop and the garbage collector of a process, and the check of its import path."""

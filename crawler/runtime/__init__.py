"""The event loop, garbage collector and heap of a process, and the check for a hidden package ``crawler``."""

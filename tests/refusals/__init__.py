"""Replays refusals through real crawls: recorded pages, and pages of the simulated platforms."""

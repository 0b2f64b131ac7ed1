"""The spiders, one for each platform. A spider defines the order of a target's requests, and joins their data."""

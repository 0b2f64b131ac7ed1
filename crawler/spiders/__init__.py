"""The spiders, one for each platform. A spider orders a target's requests, and merges the data of their responses."""

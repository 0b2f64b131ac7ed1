"""One spider for each platform. It decides the order of a target's requests and how their data is joined."""

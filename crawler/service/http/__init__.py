"""HTTP: accepts connections, checks requests, finds the route, and sends responses."""

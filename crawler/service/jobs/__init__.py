"""Jobs of the endpoint's clients."""

"""Between a request and the network: throttling, circuit breaking, injection, log context."""

"""Components that handle each download: throttling, circuit breaking, injection of page objects, log context."""

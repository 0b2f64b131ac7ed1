"""Components of downloads: lanes, throttles, circuit breakers, egresses, handlers, injection of page objects."""

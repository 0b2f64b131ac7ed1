"""The on-demand endpoint: serves calls over HTTP, scrapes their targets with open crawlers, and returns envelopes."""

"""Responses to data, or to the typed failure: one module a platform."""

"""Params to requests, pure, one module a platform."""

"""Describes the endpoint to its callers: catalogue, OpenAPI document, llms.txt and the page ``/docs``."""

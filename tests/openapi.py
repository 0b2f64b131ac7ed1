"""The OpenAPI document of the service, built once for all tests of a process: it takes a quarter of a second."""

from crawler.service.description.openapi import document

DOCUMENT = document()

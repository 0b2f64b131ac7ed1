"""The OpenAPI document of the service, which tests share, because building it takes a quarter of a second."""

from crawler.service.description.openapi import document

DOCUMENT = document()

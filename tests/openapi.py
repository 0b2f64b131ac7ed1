"""The OpenAPI document of the service. Building it takes a quarter of a second, so the tests share one."""

from crawler.service.description.openapi import document

DOCUMENT = document()

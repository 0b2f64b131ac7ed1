"""Monitors of a crawl: compare its fields and outcomes with the last runs. Needs the extra ``monitors``."""

"""Monitors compare the fields and outcomes of a crawl with those of the last runs. Needs the extra ``monitors``."""

"""Monitors, which compare the fields and outcomes of a crawl with the last runs. Needs the extra ``monitors``."""

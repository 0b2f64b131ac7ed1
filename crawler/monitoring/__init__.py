"""What a crawl is watched by: how its fields and targets did, against the last runs. Needs the extra ``monitors``."""

"""Progress, summary and monitors of a crawl. Monitors compare a run with the last runs (extra ``monitors``)."""

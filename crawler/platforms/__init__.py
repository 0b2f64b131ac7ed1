"""One package per platform, and what they share: the bases of models and page objects."""

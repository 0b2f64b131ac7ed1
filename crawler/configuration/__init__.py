"""The settings: their types and bounds, and the checks that commands make before they start."""

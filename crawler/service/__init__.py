"""The on-demand endpoint: HTTP in, a target through an open crawler, the envelope out."""

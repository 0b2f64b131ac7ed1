"""Sends the events of clients to their webhooks, by the Standard Webhooks specification."""

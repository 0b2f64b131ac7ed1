"""Sends the events of clients' jobs to their webhooks, as the Standard Webhooks specification describes."""

"""Calls: scrape a target with valid params, and wrap its record or error in an envelope."""

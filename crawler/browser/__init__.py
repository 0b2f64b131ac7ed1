"""The browser: one Chromium per process, the download handler that uses it, and the sessions on its pages."""

"""The browser: one Chromium per process, its download handler, and the sessions on its pages."""

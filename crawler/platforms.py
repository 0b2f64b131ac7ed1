"""The platforms' real origins: the one place where they are spelt."""

from __future__ import annotations

PUBLIC_ORIGINS: dict[str, str] = {
    "photoapp": "https://www.instagram.com",
    "shortvideo": "https://www.tiktok.com",
    "videosite": "https://www.youtube.com",
    "microblog": "https://x.com",
    "professional": "https://www.linkedin.com",
    "retail": "https://www.walmart.com",
}

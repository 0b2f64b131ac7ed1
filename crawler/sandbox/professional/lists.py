"""The lists in simulated profiles, except positions and schools. The rows have the keys of the expected record."""

from __future__ import annotations

from collections.abc import Callable

from crawler.sandbox.professional.words import CITIES, PUBLIC, WORDS, Row, Words, followers_text

Makers = dict[str, Callable[[], Row]]


class Lists(Words):
    """Invents the lists of a profile."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._ids = 7_000_000_000_000_000_000

    def lists(self, name: str, url: str, traits: Row, *, masked: bool) -> dict[str, list[Row]]:
        """Invent all lists of a profile except positions and schools. With the trait ``whole``, no list is empty."""
        makers = {**self._cards(), **self._works(), **self._links(name, url, tabs=traits["layout"] == "tabs")}
        clear = {"activity", "people_also_viewed", "projects", "volunteer_experience", "websites", "same_name"}
        sizes = {"activity": (0, 3, 13), "articles": (0, 10), "people_also_viewed": (10, 20), "websites": (0, 1, 3)}
        shown = {"people_also_viewed"} if traits.get("thin") else clear if masked else makers.keys()
        found: dict[str, list[Row]] = {}
        for key, make in makers.items():
            choice = sizes.get(key, (0, 0, 2))
            size = max(choice) if traits.get("whole") else self.random.choice(choice)
            found[key] = [make() for _ in range(size if key in shown else 0)]
        found["people_also_viewed"][0] |= {"summary": self.phrase(3), "location": CITIES[0]}
        return found

    def _cards(self) -> Makers:
        return {
            "awards": lambda: {
                "title": self.phrase(2),
                "issuer": self.maybe(self.phrase(2)),
                "date": self.maybe("Jun 2019"),
                "description": self.maybe(self.text(1)),
            },
            "certifications": lambda: {
                "name": self.phrase(4),
                "issuer": self.phrase(1),
                "issued": self.maybe("Aug 2022"),
                "credential_url": self.maybe(self.outside()),
                "url": self.maybe(self.outside()),
            },
            "courses": lambda: {"name": self.phrase(3), "number": self.maybe("CS 101")},
            "languages": lambda: {
                "name": self.random.choice(("English", "Svenska", "العربية")),
                "proficiency": self.maybe("Native or bilingual proficiency"),
            },
            "organizations": lambda: {
                "name": self.phrase(2),
                "position": self.maybe("Treasurer"),
                "date_range": self.maybe("Jan 2001 - May 2004"),
                "description": self.maybe(self.text(1)),
            },
        }

    def _works(self) -> Makers:
        return {
            "projects": lambda: {
                "title": self.phrase(3),
                "url": self.maybe(self.outside()),
                "date_range": self.maybe("1995 - 1999"),
                "description": self.maybe(self.text(2)),
                "contributors": [self.somebody()[0] for _ in range(self.random.randint(0, 5))],
            },
            "publications": lambda: {
                "title": self.phrase(4),
                "publisher": self.maybe(self.phrase(1)),
                "date": self.maybe("Oct 4, 2016"),
                "url": self.maybe(self.outside()),
                "description": self.maybe(self.text(2)),
                "contributors": [self.somebody()[0] for _ in range(self.random.randint(0, 2))],
            },
            "recommendations": lambda: {"name": self.somebody()[0], "url": self.somebody()[1], "text": self.text(2)},
            "volunteer_experience": lambda: {
                "role": self.phrase(1),
                "organization": self.phrase(2),
                "organization_url": self.maybe(f"{PUBLIC}/company/{self.random.choice(WORDS)}"),
                "cause": self.maybe("Science and Technology"),
                "date_range": self.maybe("Jan 1990 - Jul 2018"),
                "description": self.maybe(self.text(1)),
            },
        }

    def _links(self, name: str, url: str, *, tabs: bool) -> Makers:
        return {
            "activity": lambda: self.activity(name, url, tabs=tabs),
            "articles": self.article,
            "people_also_viewed": self.other,
            "same_name": lambda: {
                "name": name,
                "headline": self.maybe(self.phrase(2)),
                "location": self.maybe(self.random.choice(CITIES)),
                "link": self.somebody()[1],
                "image": self.maybe_picture(),
            },
            "websites": lambda: {
                "label": self.random.choice(("Blog", "Company Website", "Other")),
                "url": self.outside(),
            },
        }

    def activity(self, name: str, url: str, *, tabs: bool) -> Row:
        """Invent an activity row: a post that the member wrote or liked. Without ``tabs``, it names only the member."""
        self._ids += self.random.randint(1, 10**15)
        own = self.random.random() < 0.5
        writer, writer_url = (name, url) if own else self.somebody()
        author, author_url = (writer, writer_url) if own or tabs else (name, url)
        slug = writer_url.rpartition("/")[2]
        post = f"{PUBLIC}/posts/{slug}_{self.random.choice(WORDS)}-activity-{self._ids}-Xq_9"
        action = f"{name} {'shared' if own else 'liked'} this" if tabs else f"{'Posted' if own else 'Liked'} by {name}"
        return {
            "action": action,
            "author": author,
            "author_url": author_url,
            "image": self.maybe_picture("feedshare-shrink_800"),
            "link": post,
            "text": self.text(self.random.randint(1, 4), breaks=tabs),
        }

    def article(self) -> Row:
        """Invent an article. Some articles have no cover."""
        slug = "-".join(self.random.choices(WORDS, k=4))
        return {
            "image": self.maybe_picture("article-cover_image-shrink_720_1280") or "",
            "link": f"{PUBLIC}/pulse/{slug}",
            "title": self.phrase(5).capitalize(),
        }

    def other(self) -> Row:
        """Invent another member, for the list of other members at the right of the page."""
        name, url = self.somebody()
        return {
            "followers": self.maybe(followers_text(self.random.randint(2, 90_000))),
            "location": self.maybe(self.random.choice(CITIES)),
            "name": name,
            "summary": self.maybe(self.phrase(3)),
            "image": self.maybe_picture(),
            "link": url,
        }

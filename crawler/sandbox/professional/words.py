"""The simulated network's random content: words, pictures, institutions, other people."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import quote

Row = dict[str, Any]

PUBLIC = "https://www.linkedin.com"
MEDIA = "https://media.licdn.com/dms/image/v2"
CITIES = ("Port Avery", "Lund-on-Sea", "New Calder", "São Miguel", "Greater Hollow Area", "Östervik")
_WORDS = """
amber basil cedar delta ember fjord grove harbor indigo juniper kelp lumen maple north opal prairie quartz river summit
tundra umber velvet willow yarrow zephyr
"""
_FIRST = "Ana Bram Chidi Dilek Emre Freya Goran Hana Ivo Jun Kaveh Lien Müge Nils"
_LAST = "Abara Bergström Castellanos Dunmore El-Sayed Ferrand Gupta Hashimoto d’Aubigné Nowak"
WORDS, FIRST, LAST = (tuple(words.split()) for words in (_WORDS, _FIRST, _LAST))
ENDS = (".", " & more!", " <3", " 🚀 #Fjord2 and #größe", "’s.", " · and so on.")
EDITIONS = ("www", "uk", "nl")


@dataclass(frozen=True)
class Institution:
    """A company or a school. ``slug`` is "" if it has no page on the network."""

    kind: str
    name: str
    slug: str
    logo: str | None

    @property
    def url(self) -> str:
        """Return the URL of the company's or school's page, as expected in a record."""
        return f"{PUBLIC}/{self.kind}/{self.slug}" if self.slug else ""

    @property
    def shown_url(self) -> str:
        """Return the URL as a page shows it: of a country edition, or with a slash at the end."""
        edition, slash = EDITIONS[len(self.slug) % len(EDITIONS)], "/" * (self.kind == "school")
        return self.url.replace("www", edition) + slash if self.slug else ""

    @property
    def head(self) -> Row:
        """Return the expected object for a company or school that is shown at the top of a profile."""
        return {"logo": self.logo, "name": self.name, "url": self.url}


class Words:
    """Invents random content. The same seed produces the same content on every machine."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"professional {seed}")  # noqa: S311  # invented data, the same on every machine

    def phrase(self, words: int) -> str:
        """Invent a phrase of a few words."""
        return " ".join(self.random.choices(WORDS, k=words))

    def text(self, sentences: int, *, breaks: bool = False) -> str:
        """Invent sentences that contain characters that must be escaped. ``breaks``: with some line breaks."""
        made = [
            self.phrase(self.random.randint(4, 14)).capitalize() + self.random.choice(ENDS) for _ in range(sentences)
        ]
        return self.random.choice((" ", "\n", "\n\n") if breaks else (" ",)).join(made)

    def maybe(self, value: str) -> str:
        """Return either the text or "", at random."""
        return value if self.random.random() < 0.7 else ""

    def outside(self) -> str:
        """Invent the URL of an external page."""
        host, path = self.random.choices(WORDS, k=2)
        return f"https://{host}.example/{path}?a=1&b={self.random.randint(1, 99)}"

    def picture(self, kind: str) -> str:
        """Invent the signed URL of a picture."""
        mark = "".join(self.random.choices("ABCDEFabcdef0123456789-_", k=22))
        number = self.random.randint(10**12, 2 * 10**12)
        return f"{MEDIA}/D5603AQ{mark}/{kind}/0/{number}?e=2147483647&v=beta&t={mark}{mark}"

    def maybe_picture(self, kind: str = "profile-displayphoto-shrink_400_400") -> str | None:
        """Return either the invented signed URL of a picture or None, at random."""
        return self.picture(kind) if self.random.random() < 0.8 else None

    def company(self) -> Institution:
        """Return a random employer."""
        kind = self.random.choice(("company", "company", "company", "school", "showcase"))
        return self.institution(
            kind, f"{self.phrase(1).title()} {self.random.choice(('& Co.', 'Labs', 'Foundation', '21'))}"
        )

    def institution(self, kind: str, name: str) -> Institution:
        """Invent a company or a school, in some cases without a page or a logo."""
        slug = "".join(letter if letter.isalnum() else "-" for letter in name.lower()).strip("-")
        paged = self.random.random() < 0.85
        logo = self.picture("company-logo_100_100") if paged and self.random.random() < 0.9 else None
        return Institution(kind, name, slug if paged else "", logo)

    def somebody(self) -> tuple[str, str]:
        """Invent a member's name and the URL of the profile."""
        first, last = self.random.choice(FIRST), self.random.choice(LAST)
        return f"{first} {last}", f"{PUBLIC}/in/{quote(f'{first}-{self.random.choice(WORDS)}'.lower())}"


def followers_text(number: int) -> str:
    """Return the text with the rounded number of followers, in the format of pages."""
    for size, unit in ((1_000_000, "M"), (1_000, "K")):
        if number >= size:
            return f"{number // size}{unit} followers"
    return f"{number} followers"

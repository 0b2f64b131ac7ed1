"""The simulated network's members: invented from a seed, with every real kind of profile.

The rows of a profile's lists have the keys of the record. The page modules render the rows as HTML.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote

from crawler.sandbox.professional.lists import Lists
from crawler.sandbox.professional.words import CITIES, FIRST, LAST, PUBLIC, Institution, Row
from crawler.sandbox.skeletons import invented

INVENTED = invented(__file__)
SPECIAL: dict[str, Row] = INVENTED.special
"""The traits of the members that exist for every seed, by profile name. Faults damage copies of the first member's
page."""
RENAMED = {"mara-before": "mara-lindqvist"}
"""New profile names by former names. A request for a former name is redirected to the new name."""

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NOW = 2026 * 12 + 6


@dataclass(frozen=True)
class Position:
    """A position of a member. The page groups consecutive positions at one employer."""

    at: Institution
    title: str
    start: str
    end: str
    """The last month or year in the position, or "Present"."""
    duration: str
    location: str
    description: str

    @property
    def date_range(self) -> str:
        """Return the start and the end as the page shows them."""
        return f"{self.start} - {self.end}"


@dataclass(frozen=True)
class Study:
    """A member's time at a school. A missing degree, field or grade is ""."""

    at: Institution
    degree: str
    field: str
    grade: str
    start: int | None
    end: int | None
    description: str

    @property
    def date_range(self) -> str:
        """Return the start and the end as the page shows them."""
        return " - ".join(str(year) for year in (self.start, self.end) if year)


@dataclass(frozen=True)
class Member:
    """A member of the network, and the variant of the member's profile page."""

    slug: str
    first: str
    last: str
    headline: str
    about: str
    location: str
    country: str
    """The country code, which is only in the linked data."""
    edition: str
    """The country edition in the page's canonical URL: "www" or two letters."""
    photo: str | None
    cover: str | None
    followers: int
    connections: str
    positions: tuple[Position, ...]
    studies: tuple[Study, ...]
    rows: dict[str, list[Row]] = field(repr=False)
    """All lists except positions and schools, by the name of their field in the record."""
    skills: tuple[str, ...]
    masked: bool
    linked: bool
    """Whether the page has linked data."""
    layout: str
    """The layout of the section with recent activity: "tabs" or "list"."""
    rendered: bool
    """Whether the page is served as if saved by a browser in 2024: in the layout of that time, with pictures loaded."""
    counted: bool
    """Whether the page shows the numbers of followers and connections."""

    @property
    def name(self) -> str:
        """Return the name that the page shows."""
        return f"{self.first} {self.last}".strip()

    @property
    def url(self) -> str:
        """Return the canonical URL of the profile."""
        return f"https://{self.edition}.linkedin.com/in/{quote(self.slug)}"

    @property
    def cut_about(self) -> str:
        """Return the beginning of the text about the member, which is all that a masked page contains of this text."""
        return f"{self.about[: len(self.about) * 2 // 3].rstrip()}…" if self.about else ""

    @property
    def employer(self) -> Institution | None:
        """Return the company at the top of the profile: the employer of the first present position."""
        return next((p.at for p in self.positions if p.end == "Present"), None)


class MemberFactory(Lists):
    """Invents all members of the network from one seed."""

    def members(self, number: int) -> list[Member]:
        """Invent all special members, and ``number`` random members."""
        made = [self.member(slug, {"masked": False, **traits}) for slug, traits in SPECIAL.items()]
        for index in range(number):
            first, last = self.random.choice(FIRST), self.random.choice(LAST)
            slug = f"{first}-{last}-{index:02x}7e".lower().replace("’", "")
            made.append(self.member(slug, {"first": first, "last": last}))
        return made

    def member(self, slug: str, traits: Row) -> Member:
        """Invent a member. ``traits`` sets some properties; the others are random."""
        chance = self.random.random
        traits.setdefault("layout", self.random.choice(("tabs", "list")))
        masked, thin = traits.get("masked", chance() < 0.3), traits.get("thin", False)
        edition = traits.get("edition", "uk" if chance() < 0.1 else "www")
        code, country = INVENTED.editions.get(edition) or self._country()
        whole = traits.get("whole", False)
        positions = () if thin else self.positions(traits, masked=masked)
        has_about = traits.get("about", whole or chance() < 0.7) and not thin
        name = f"{traits['first']} {traits['last']}".strip()
        return Member(
            slug=slug,
            first=traits["first"],
            last=traits["last"],
            headline="" if masked else f"{self.random.choice(INVENTED.titles)} at {self.company().name}",
            about=self.text(3, breaks=True) if has_about else "",
            location=country if thin else self._location(country),
            country=code,
            edition=edition,
            photo=self.picture("profile-displayphoto-shrink_200_200") if traits.get("photo", True) else None,
            cover=self.picture("profile-displaybackgroundimage-shrink_200_800") if chance() < 0.7 else None,
            followers=self.random.choice((0, 1, 37, 681, 12_345, 40_603_288)) + 2,
            connections=self.random.choice(("8 connections", "1 connection", "500+ connections")),
            positions=positions,
            studies=() if thin else tuple(self.study() for _ in range(self.random.randint(1 if whole else 0, 4))),
            rows=self.lists(name, f"{PUBLIC}/in/{quote(slug)}", traits, masked=masked),
            skills=()
            if masked or thin
            else tuple(self.phrase(2) for _ in range(self.random.choice((0, 3, 26)) + whole)),
            masked=masked,
            linked=traits.get("linked", chance() < 0.6),
            layout=traits["layout"],
            rendered=traits.get("rendered", chance() < 0.2),
            counted=traits.get("counted", chance() < 0.9),
        )

    def _country(self) -> tuple[str, str]:
        code = self.random.choice(sorted(INVENTED.countries))
        return code.upper(), INVENTED.countries[code]

    def _location(self, country: str) -> str:
        kind = self.random.random()
        city = self.random.choice(CITIES)
        return country if kind < 0.2 else city if kind < 0.3 else f"{city}, {country}"

    # Positions and schools

    def positions(self, traits: Row, *, masked: bool) -> tuple[Position, ...]:
        """Invent positions, newest first. Some consecutive positions have the same employer."""
        number = traits.get("positions", self.random.randint(1 if masked or traits.get("whole") else 0, 9))
        made: list[Position] = []
        ended = NOW
        while len(made) < number:
            at = self.company()
            for _ in range(self.random.choice((1, 1, 1, 2, 4))):
                if len(made) == number:
                    break
                first = not made and not traits.get("retired")
                made.append(self.position(at, ended, lasting=first or (not traits.get("retired") and len(made) < 3)))
                ended -= self.random.randint(3, 30)
        return tuple(made)

    def position(self, at: Institution, ended: int, *, lasting: bool) -> Position:
        """Invent a position. ``lasting``: it is the member's present position; else it ended in the month ``ended``."""
        months = self.random.randint(1, 90)
        end = NOW if lasting else ended
        years, rest = divmod(months, 12)
        spelt = [f"{n} {unit}{'s' * (n > 1)}" for n, unit in ((years, "year"), (rest, "month")) if n]
        return Position(
            at=at,
            title=self.random.choice(INVENTED.titles),
            start=self._month(end - months),
            end="Present" if lasting else self._month(end),
            duration=" ".join(spelt),
            location=self.random.choice(("", *CITIES)),
            description=self.text(self.random.randint(1, 6), breaks=True) if self.random.random() < 0.4 else "",
        )

    def _month(self, number: int) -> str:
        year, month = divmod(number, 12)
        return f"{MONTHS[month]} {year}" if self.random.random() < 0.8 else str(year)

    def study(self) -> Study:
        """Invent a member's time at a school."""
        start = self.random.choice((None, 1973, 1999, 2008))
        degree = self.random.choice(("", "MBA", "Bachelor’s Degree"))
        subject = self.random.choice(("", "Electrical & Other Engineering")) if degree else ""
        return Study(
            at=self.institution("school", f"University of {self.phrase(1).title()}"),
            degree=degree,
            field=subject,
            grade="A*" if subject and self.random.random() < 0.5 else "",
            start=start,
            end=start + 3 if start and self.random.random() < 0.9 else None,
            description=f"Activities and Societies: {self.phrase(3)}" if self.random.random() < 0.4 else "",
        )

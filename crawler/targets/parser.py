"""Parsing of targets: raw params become a ``Target``, or an ``InvalidTarget`` with the error."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, get_args

from pydantic import ValidationError

from crawler.configuration.names import MAX_NAMED, name_unknown
from crawler.errors import Detail, InvalidRequest, ScrapeError, ScraperNotFound
from crawler.platforms.links import LinkError, cleaned, read_link, unquoted
from crawler.platforms.model import LinkParams, Params, first_problem, validation_details
from crawler.targets.target import OWN_KEYS, InvalidTarget, SavedTarget, Scraper, Target, new_id

_SEPARATORS = re.compile(r"[\s_-]+")


def check_params(scraper: Scraper, params: Mapping[str, Any], *, text: bool = False) -> Params:
    """Validate params with the scraper's model, and return the model's instance.

    ``text``: all values are strings (``-a`` arguments, CSV cells) and are converted to the types of the fields. Texts
    are cleaned (``Params.clean``). Params that the link in ``url`` contains, such as a listing's page, are added.

    Raises:
        InvalidRequest: the params are invalid. ``details`` has one entry for each invalid field.
    """
    if None in params.values():
        message = "null is not a valid value; omit the key"
        nulls = [key for key, value in params.items() if value is None]
        details: list[Detail] = [{"loc": [key], "msg": message, "type": "null"} for key in nulls]
        raise InvalidRequest(f"{scraper.name}: {nulls[0]}: {message}", details=details)
    params = scraper.params.clean(params)
    if issubclass(scraper.params, LinkParams):
        params = scraper.params.with_link(params, text=text)
    reductions: list[str] = []
    try:
        if text:
            return scraper.params.model_validate_strings(params, context=reductions)
        return scraper.params.model_validate(params, context=reductions)
    except ValidationError as error:
        known = scraper.params.model_fields
        message = f"{scraper.name}: {first_problem(error, 'params', known=known)}"
        raise InvalidRequest(message, details=validation_details(error, known)) from error


@dataclass(frozen=True)
class TargetParser:
    """Converts raw params to a ``Target`` for one of the given scrapers, or to an ``InvalidTarget``."""

    scrapers: tuple[Scraper, ...]
    """The known scrapers. Those of a spider are in the spider's order, which begins with the default scraper."""
    default: str | None = None
    """The scraper of targets that do not name one (``-a scraper=``)."""
    sliced: bool = False
    """Whether targets may be split into slices. The feed line of each slice then contains the requested target's id."""

    def scraper(self, name: str | None, params: Mapping[str, Any]) -> Scraper:
        """Return the scraper with the given name or alias. Without a name, return the scraper that accepts the params.

        If several scrapers of one spider accept the params, return the first of them: it is the spider's default.
        Params of other scrapers that do not identify a target may be among them.

        A link in ``url`` identifies the scraper by the page that it leads to.

        Raises:
            ScraperNotFound: no scraper of this spider has the name.
            InvalidRequest: no name was given, and the params fit no scraper, or scrapers of several platforms.
        """
        name = unquoted(name) if isinstance(name, str) else name
        name = name or self.default
        if name:
            for scraper in self.scrapers:
                if name == scraper.name or name in scraper.aliases:
                    return scraper
            known = ", ".join(s.name for s in self.scrapers)
            raise ScraperNotFound(f"Unknown scraper {name!r}: this spider has {known}.")
        if len(self.scrapers) == 1:
            return self.scrapers[0]
        if isinstance(url := params.get("url"), str):
            return self._scraper_of_link(url)
        fields = {s.name: s.params.model_fields.keys() for s in self.scrapers}
        if unknown := [key for key in params if not any(key in each for each in fields.values())]:
            names = {name for each in fields.values() for name in each}
            raise InvalidRequest(
                f"Unknown params: {name_unknown(unknown, names)}. Known are {self.forms()}.",
                details=[
                    {"loc": [key], "msg": "unknown param", "type": "extra_forbidden"} for key in unknown[:MAX_NAMED]
                ],
            )
        stated = self._identifying.intersection(params)
        needed = [
            s
            for s in self.scrapers
            if stated <= fields[s.name] and any(way <= params.keys() for way in required_params(s.params))
        ]
        needed = [s for s in needed if params.keys() <= fields[s.name]] or needed
        if len({each.platform for each in needed}) != 1:
            raise InvalidRequest(
                "The params do not identify a scraper. Name it with 'scraper', or give the params of one of: "
                f"{self.forms()}."
            )
        return needed[0]

    @property
    def candidates(self) -> tuple[Scraper, ...]:
        """The scrapers to which a row without a scraper's name may belong: the default one, or else all of them."""
        return (self.scraper(self.default, {}),) if self.default else self.scrapers

    @cached_property
    def _identifying(self) -> frozenset[str]:
        """The params of which some identify a target of one of the scrapers."""
        return frozenset(name for s in self.scrapers for way in required_params(s.params) for name in way)

    def forms(self) -> str:
        """Return the names of the scrapers with their params, for messages."""
        return "; ".join(f"{s.name}: {', '.join(s.params.model_fields)}" for s in self.scrapers)

    def _scraper_of_link(self, url: str) -> Scraper:
        try:
            link = read_link(url)
        except LinkError as error:
            problem = str(error)
        else:
            if fitting := [each for each in self.scrapers if each.name in link.scrapers]:
                return fitting[0]
            problem = f"this is {link}"
        if len({each.platform for each in self.scrapers}) == 1:
            return self.scrapers[0]  # the validation of its params lists the valid links
        raise InvalidRequest.of("url", problem)

    @cached_property
    def by_heading(self) -> dict[str, str]:
        """The names of all params, and of the keys ``id`` and ``scraper``, by their headings."""
        names = (*OWN_KEYS, *(name for each in self.scrapers for name in each.params.model_fields))
        return {heading(name): name for name in names}

    def split(self, row: Mapping[str, Any], own: Collection[str] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a row's params with ``id`` and ``scraper``, and the user's own values, under the user's names.

        ``own``: the names of a table's columns that are the user's own, as its header shows.

        A value is a param only if the row's scraper has this param. If the row has no scraper, ``parse`` reports the
        error: all values whose names are those of params are returned as params, or all but ``own`` if none identifies
        a target.

        Raises:
            InvalidRequest: two names of the row mean the same. The message continues a sentence that begins with the
                row.
        """
        known = {name: self.by_heading[heading(name)] for name in row if heading(name) in self.by_heading}
        meant = {known[name]: row[name] for name in known}
        if len(meant) < len(known):
            twice = next(name for name in known if list(known.values()).count(known[name]) > 1)
            raise InvalidRequest(f"has several values with the name {twice!r}")
        try:
            scraper = self.scraper(meant.get("scraper"), {name: meant[name] for name in meant if name not in OWN_KEYS})
        except ScrapeError:
            if self._identifying.isdisjoint(meant):  # what looks like the user's own may be a misspelt param
                perhaps = {known.get(name, name): value for name, value in row.items() if name not in own}
                return perhaps, {name: row[name] for name in own if name in row}
            params: Collection[str] = meant
        else:
            params = {*OWN_KEYS, *scraper.params.model_fields}
        others = {name: value for name, value in row.items() if known.get(name) not in params}
        return {name: value for name, value in meant.items() if name in params}, others

    def own_names(self, names: Collection[str], *, of_all_rows: bool) -> list[str]:
        """Return the names of columns or keys that may be the user's own, because not each scraper has the param.

        Params that identify a target are the user's own only beside links. ``of_all_rows``: whether no row has other
        names. Then only the scrapers whose targets the names can identify have rows, unless the rows name scrapers.
        """
        headings = {self.by_heading.get(heading(name)) for name in names}
        scrapers = self.candidates
        if of_all_rows and "scraper" not in headings:
            scrapers = tuple(s for s in scrapers if any(way <= headings for way in required_params(s.params)))
        params_of_rows = frozenset() if "url" in headings else self._identifying
        params = [{*OWN_KEYS, *params_of_rows, *each.params.model_fields} for each in scrapers]
        return [name for name in names if not all(self.by_heading.get(heading(name)) in each for each in params)]

    def parse(
        self,
        raw: Mapping[str, Any],
        *,
        text: bool = False,
        line: int | None = None,
        row: int | None = None,
        batch: bool = False,
    ) -> Target | InvalidTarget:
        """Parse one mapping that contains the params and, optionally, the keys ``scraper`` and ``id``."""
        params = {k: v for k, v in raw.items() if k not in OWN_KEYS}
        target_id = str(raw.get("id") or new_id())
        name = raw.get("scraper")
        try:
            if name is not None and not isinstance(name, str):
                raise InvalidRequest("'scraper' must be a string: the name of a scraper.")
            scraper = self.scraper(name, params)
            model = check_params(scraper, params, text=text)
        except ScrapeError as error:
            named = name if isinstance(name, str) else None
            return InvalidTarget(target_id, error, scraper=named, raw=params, line=line, row=row)
        root = target_id if self.sliced else None
        place: dict[str, Any] = {"line": line, "row": row, "batch": batch or self.sliced, "root": root}
        return Target(target_id, scraper, model, **place, note=model.note())

    def integers_as_text(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Convert integers to text where the scraper's params are text, because programs write ids as numbers.

        Other numbers are not converted: the text of 976759.0 or 1e6 is ambiguous.
        """
        try:
            scraper = self.scraper(raw.get("scraper"), {key: raw[key] for key in raw if key not in OWN_KEYS})
        except ScrapeError:
            return dict(raw)  # ``parse`` reports the error
        texts = {name for name, info in scraper.params.model_fields.items() if _is_text(info.annotation)}
        return {key: str(value) if type(value) is int and key in texts else value for key, value in raw.items()}

    def load(self, saved: SavedTarget, *, row: int | None = None) -> Target | InvalidTarget:
        """Convert a target from a job.

        The result may be an ``InvalidTarget``, because another version of the project may have written the target.
        """
        try:
            scraper = self.scraper(saved.scraper, saved.params)
            params = check_params(scraper, saved.params)
        except ScrapeError as error:
            return InvalidTarget(saved.id, error, saved.scraper, saved.params, saved.line, row, saved.columns)
        parents = (saved.parent, saved.hop)
        place: dict[str, Any] = {"line": saved.line, "row": row, "columns": saved.columns, "note": saved.note}
        return Target(saved.id, scraper, params, *parents, batch=saved.batch, root=saved.root, **place)


@lru_cache(10_000)
def heading(name: str) -> str:
    r"""Return what decides whether two names of columns or keys mean the same.

    >>> heading("Cat ID") == heading("cat_id") == heading("\ufeffcat-id ")
    True
    """
    return _SEPARATORS.sub("", cleaned(name)).casefold()


def _is_text(annotation: Any) -> bool:
    """Whether a field's type is ``str``, also ``str | None`` or ``Annotated[str, ...]``."""
    return annotation is str or any(map(_is_text, get_args(annotation)))


@cache
def required_params(params: type[Params]) -> list[set[str]]:
    """Return sets of params, such as ``{"cat_id"}`` and ``{"url"}``. A target must have all params of one of them."""
    always = {name for name, field in params.model_fields.items() if field.is_required()}
    return [always | {name} for name in params.exactly_one_of] or [always]

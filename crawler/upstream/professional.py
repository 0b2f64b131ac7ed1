"""Professional network: params to the request of a profile page. The page is rendered whole; no other call is needed."""

from __future__ import annotations

from urllib.parse import quote

from scrapy import Request

from crawler.platforms import PUBLIC_ORIGINS

# Editions by country, to which the site may send a visitor from there (their hosts are its own). Two letters each:
# the ISO codes of 2026-11, in lower case, and "uk".
COUNTRIES = (
    "ad ae af ag al am ao ar at au az ba bb bd be bf bg bh bi bj bn bo br bs bt bw by bz ca cd cf cg ch ci cl cm cn co "
    "cr cv cy cz de dj dk dm do dz ec ee eg er es et fi fj fr ga gb gd ge gh gm gn gq gr gt gw gy hk hn hr ht hu id ie "
    "il in iq is it jm jo jp ke kg kh ki km kn kr kw kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mk ml mm mn mo "
    "mr mt mu mv mw mx my mz na ne ng ni nl no np nz om pa pe pg ph pk pl pr ps pt py qa ro rs ru rw sa sb sc sd se sg "
    "si sk sl sm sn so sr ss st sv sz td tg th tj tl tm tn to tr tt tw tz ua ug uk us uy uz vc ve vn vu ws ye za zm zw"
).split()


def profile_request(origin: str, *, slug: str) -> Request:
    """The request of a member's page. The page object finds the name asked for in ``page_params``."""
    return Request(f"{origin}/in/{quote(slug, safe='')}", meta={"page_params": {"slug": slug}})


def edition_origins(origin: str) -> set[str]:
    """The origins of the site's country editions; none for an origin that is not the public site."""
    if origin != PUBLIC_ORIGINS["professional"]:
        return set()
    return {origin.replace("://www.", f"://{country}.", 1) for country in COUNTRIES}

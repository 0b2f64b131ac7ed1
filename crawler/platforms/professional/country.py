"""The country names that the platform uses at the end of locations, with their ISO 3166 codes."""

from __future__ import annotations

_NAMES = """
AD Andorra;AE United Arab Emirates;AF Afghanistan;AG Antigua and Barbuda;AL Albania;AM Armenia;AO Angola;AR Argentina
AT Austria;AU Australia;AZ Azerbaijan;BA Bosnia and Herzegovina;BB Barbados;BD Bangladesh;BE Belgium;BF Burkina Faso
BG Bulgaria;BH Bahrain;BI Burundi;BJ Benin;BM Bermuda;BN Brunei;BO Bolivia;BR Brazil;BS Bahamas;BS The Bahamas
BT Bhutan;BW Botswana;BY Belarus;BZ Belize;CA Canada;CD Democratic Republic of the Congo;CD Congo (DRC)
CF Central African Republic;CG Congo;CH Switzerland;CI Ivory Coast;CI Côte d’Ivoire;CL Chile;CM Cameroon;CN China
CO Colombia;CR Costa Rica;CU Cuba;CV Cape Verde;CV Cabo Verde;CY Cyprus;CZ Czechia;CZ Czech Republic;DE Germany
DJ Djibouti;DK Denmark;DM Dominica;DO Dominican Republic;DZ Algeria;EC Ecuador;EE Estonia;EG Egypt;ER Eritrea;ES Spain
ET Ethiopia;FI Finland;FJ Fiji;FR France;GA Gabon;GB United Kingdom;GD Grenada;GE Georgia;GH Ghana;GI Gibraltar
GL Greenland;GM Gambia;GM The Gambia;GN Guinea;GQ Equatorial Guinea;GR Greece;GT Guatemala;GW Guinea-Bissau;GY Guyana
HK Hong Kong;HK Hong Kong SAR;HN Honduras;HR Croatia;HT Haiti;HU Hungary;ID Indonesia;IE Ireland;IL Israel
IM Isle of Man;IN India;IQ Iraq;IR Iran;IS Iceland;IT Italy;JE Jersey;JM Jamaica;JO Jordan;JP Japan;KE Kenya
KG Kyrgyzstan;KH Cambodia;KM Comoros;KN Saint Kitts and Nevis;KR South Korea;KR Korea;KW Kuwait;KY Cayman Islands
KZ Kazakhstan;LA Laos;LB Lebanon;LC Saint Lucia;LI Liechtenstein;LK Sri Lanka;LR Liberia;LS Lesotho;LT Lithuania
LU Luxembourg;LV Latvia;LY Libya;MA Morocco;MC Monaco;MD Moldova;ME Montenegro;MG Madagascar;MK North Macedonia
MK Macedonia;ML Mali;MM Myanmar;MN Mongolia;MO Macau;MO Macao SAR;MR Mauritania;MT Malta;MU Mauritius;MV Maldives
MW Malawi;MX Mexico;MY Malaysia;MZ Mozambique;NA Namibia;NE Niger;NG Nigeria;NI Nicaragua;NL Netherlands
NL The Netherlands;NO Norway;NP Nepal;NZ New Zealand;OM Oman;PA Panama;PE Peru;PG Papua New Guinea;PH Philippines
PK Pakistan;PL Poland;PR Puerto Rico;PS Palestinian Territory;PS Palestine;PT Portugal;PY Paraguay;QA Qatar;RO Romania
RS Serbia;RU Russia;RU Russian Federation;RW Rwanda;SA Saudi Arabia;SB Solomon Islands;SC Seychelles;SD Sudan;SE Sweden
SG Singapore;SI Slovenia;SK Slovakia;SL Sierra Leone;SM San Marino;SN Senegal;SO Somalia;SR Suriname;SS South Sudan
ST São Tomé and Príncipe;SV El Salvador;SY Syria;SZ Eswatini;TD Chad;TG Togo;TH Thailand;TJ Tajikistan;TL Timor-Leste
TM Turkmenistan;TN Tunisia;TO Tonga;TR Turkey;TR Türkiye;TT Trinidad and Tobago;TW Taiwan;TZ Tanzania;UA Ukraine
UG Uganda;US United States;UY Uruguay;UZ Uzbekistan;VC Saint Vincent and the Grenadines;VE Venezuela;VN Vietnam
VU Vanuatu;WS Samoa;XK Kosovo;YE Yemen;ZA South Africa;ZM Zambia;ZW Zimbabwe
"""
_CODES = {
    name.casefold(): code for code, _, name in (entry.partition(" ") for entry in _NAMES.replace("\n", ";").split(";"))
}

EDITIONS = {"uk": "GB"}
"""Country codes by the subdomain of the country's edition of the site, if they differ."""


def country_of_location(location: str) -> str:
    """Return the ISO code of the country at the end of a location, or "" if the location does not end in a country.

    >>> country_of_location("Redmond, Washington, United States"), country_of_location("San Francisco Bay Area")
    ('US', '')
    """
    return _CODES.get(location.rpartition(",")[2].strip().casefold(), "") if location else ""


def country_of_host(host: str) -> str:
    """Return the ISO code of the country whose edition of the site a host serves, or "" for the main site.

    >>> country_of_host("uk.linkedin.com"), country_of_host("se.linkedin.com"), country_of_host("www.linkedin.com")
    ('GB', 'SE', '')
    """
    edition = host.partition(".")[0]
    return EDITIONS.get(edition, edition.upper() if len(edition) == 2 else "")

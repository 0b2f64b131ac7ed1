"""The fixtures with interface words of other languages: no value is invented, and none is lost without a warning."""

from __future__ import annotations

import re

import pytest

from tests.mutations import PageFixture, differences, fixtures

PLATFORMS = ("photoapp", "shortvideo", "videosite")
FIXTURES = [fixture for platform in PLATFORMS for fixture in fixtures(platform)]
WORDS: dict[str, dict[str, str]] = {
    "de": {
        "views": "Aufrufe",
        "view": "Aufruf",
        "subscribers": "Abonnenten",
        "videos": "Videos",
        "video": "Video",
        "Joined": "Beigetreten am",
        "ago": "vor",
        "Streamed": "Gestreamt vor",
        "watching": "schauen zu",
        "K": " Tsd.",
        "M": " Mio.",
        "B": " Mrd.",
        "No": "Keine",
        "months": "Monaten",
        "play": "Short abspielen",
        "thousands": ".",
    },
    "fr": {
        "views": "vues",
        "view": "vue",
        "subscribers": "abonnés",
        "videos": "vidéos",
        "video": "vidéo",
        "Joined": "Actif depuis le",
        "ago": "il y a",
        "Streamed": "Diffusé il y a",
        "watching": "spectateurs",
        "K": " k",
        "M": " M de",
        "B": " Md de",
        "No": "Aucune",
        "months": "mois",
        "play": "lire le Short",
        "thousands": "\u202f",
    },
    "es": {
        "views": "visualizaciones",
        "view": "visualización",
        "subscribers": "suscriptores",
        "videos": "vídeos",
        "video": "vídeo",
        "Joined": "Se unió el",
        "ago": "hace",
        "Streamed": "Emitido hace",
        "watching": "viendo",
        "K": " mil",
        "M": " M de",
        "B": " mil M de",
        "No": "Sin",
        "months": "meses",
        "play": "reproducir Short",
        "thousands": ".",
    },
}
SHOWN = r"subscriber_count_text$"
"""The path of a field that contains the text exactly as the platform shows it."""
_NUMBER = r"(?P<number>\d[\d,]*(?:\.\d+)?)(?P<scale>[KMB]?)"


def translated(body: bytes, words: dict[str, str]) -> bytes:
    """Replace the interface words around numbers and dates, the separators in numbers, and suffixes such as "K"."""

    def number(found: re.Match[str]) -> str:
        thousands = words["thousands"]
        text = found["number"].replace(",", "_").replace(".", ",").replace("_", thousands)
        return f"{text}{words.get(found['scale'], '')} {words[found['thing'].lower()]}"

    text = body.decode()
    text = re.sub(rf"\b{_NUMBER} (?P<thing>views?|subscribers|videos?|watching)\b", number, text, flags=re.IGNORECASE)
    text = text.replace("play Short", words["play"])
    text = re.sub(r"\bNo views\b", f"{words['No']} {words['views']}", text)
    text = re.sub(r"\bStreamed (\d+) \w+ ago\b", rf"{words['Streamed']} \1 {words['months']}", text)
    text = re.sub(r"\b(\d+) \w+ ago\b", rf"{words['ago']} \1 {words['months']}", text)
    return re.sub(r"\bJoined (?=\w{1,3} \d)", f"{words['Joined']} ", text).encode()


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.name)
def test_a_page_in_another_language_gives_no_wrong_value(fixture: PageFixture, language: str) -> None:
    before, after = fixture.read(fixture.body), fixture.read(translated(fixture.body, WORDS[language]))
    assert after.error is None, after.error
    found = [each for each in differences(before.item, after.item) if not re.search(SHOWN, each.path)]
    assert [each for each in found if each.kind != "emptied"] == []
    if found:
        assert after.skipped - before.skipped, found[0]


def test_the_words_of_several_fixtures_are_replaced() -> None:
    changed = [each for each in FIXTURES if translated(each.body, WORDS["de"]) != each.body]
    assert len(changed) > 5
    assert any(differences(each.item, each.read(translated(each.body, WORDS["de"])).item) for each in changed)

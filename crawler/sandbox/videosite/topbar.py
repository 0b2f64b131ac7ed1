"""The bar at the top of the simulated video site's pages."""

from __future__ import annotations

from typing import Any

from crawler.sandbox.videosite.parts import (
    Node,
    accessibility_label,
    button,
    command,
    linked,
    mark,
    posted,
    runs,
    view_button,
)


def topbar() -> Node:
    """Build the bar at the top of every page."""

    def signal(name: str) -> Node:
        action = {"signal": "CLIENT_SIGNAL", "actions": [command(name, signalAction={"signal": name})]}
        return command(name, web={"sendPost": True}, signalServiceEndpoint=action)

    def plain(name: str, **more: Any) -> Node:
        return {"buttonRenderer": {"trackingParams": mark(name), "command": signal(name), **more}}

    option = {
        "label": runs("Toggle play/pause"),
        "hotkey": "k",
        "hotkeyAccessibilityLabel": {"accessibilityData": {"label": "k"}},
    }
    section = {"title": runs("Playback"), "options": [{"hotkeyDialogSectionOptionRenderer": option}] * 30}
    popup = {
        "multiPageMenuRenderer": {
            "trackingParams": mark("settings"),
            "style": "MULTI_PAGE_MENU_STYLE_TYPE_SYSTEM",
            "showLoadingSpinner": True,
        }
    }
    opened = command("settings", openPopupAction={"popup": popup, "popupType": "DROPDOWN", "beReused": True})
    menu = command(
        "menu",
        web=posted("account/account_menu"),
        signalServiceEndpoint={"signal": "GET_ACCOUNT_MENU", "actions": [opened]},
    )
    icon = {"icon": {"iconType": "CLOSE"}}
    skip = {"style": "STYLE_DEFAULT", "size": "SIZE_DEFAULT", "isDisabled": False, "text": runs("Skip navigation")}
    dialog = {
        "title": runs("Keyboard shortcuts"),
        "sections": [{"hotkeyDialogSectionRenderer": section}],
        "dismissButton": button("STYLE_BLUE_TEXT", "dismiss", text=runs("Dismiss")),
        "trackingParams": mark("hotkeys"),
    }
    signed = command(
        "sign in",
        web=linked("https://accounts.google.com/ServiceLogin", "UNKNOWN", 83_769, api=False),
        signInEndpoint={"idamTag": "65620"},
    )
    return {
        "desktopTopbarRenderer": {
            "logo": {
                "topbarLogoRenderer": {
                    "iconImage": {"iconType": "YOUTUBE_LOGO"},
                    "tooltipText": runs("Home"),
                    "endpoint": command(
                        "logo", web=linked("/", "BROWSE", 3854), browseEndpoint={"browseId": "FEwhat_to_watch"}
                    ),
                    "trackingParams": mark("logo"),
                    "overrideEntityKey": mark("key", size=12),
                }
            },
            "searchbox": {"fusionSearchboxRenderer": _searchbox(icon)},
            "trackingParams": mark("topbar"),
            "countryCode": "US",
            "topbarButtons": [
                {
                    "topbarMenuButtonRenderer": {
                        "icon": {"iconType": "MORE_VERT"},
                        "menuRequest": menu,
                        "trackingParams": mark("dots"),
                        "tooltip": "Settings",
                        "style": "STYLE_DEFAULT",
                    }
                    | accessibility_label("Settings")
                },
                {
                    "buttonRenderer": {
                        "style": "STYLE_SUGGESTIVE",
                        "size": "SIZE_SMALL",
                        "text": runs("Sign in"),
                        "icon": {"iconType": "AVATAR_LOGGED_OUT"},
                        "navigationEndpoint": signed,
                        "trackingParams": mark("sign in"),
                        "targetId": "topbar-signin",
                    }
                },
            ],
            "hotkeyDialog": {"hotkeyDialogRenderer": dialog},
            "backButton": plain("HISTORY_BACK"),
            "forwardButton": plain("HISTORY_FORWARD"),
            "a11ySkipNavigationButton": plain("SKIP_NAVIGATION", **skip),
        }
    }


def _searchbox(icon: Node) -> Node:
    def answer(words: str, kind: str) -> Node:
        made = view_button("MONO", kind, "DEFAULT", words, title=words)
        made["buttonViewModel"] |= {"isFullWidth": True}
        return made

    dialog = {
        "header": {"dialogHeaderViewModel": {"headline": {"content": "Image source"}}},
        "footer": {
            "panelFooterViewModel": {
                "primaryButton": answer("Visit source", "FILLED"),
                "secondaryButton": answer("Cancel", "TONAL"),
                "shouldHideDivider": True,
            }
        },
        "content": {"basicContentViewModel": {"paragraphs": [{"text": {"content": "Visit image source website?"}}]}},
    }
    strategy = {"inlineContent": {"dialogViewModel": dialog}}
    config = {"requestLanguage": "en", "requestDomain": "us", "hasOnscreenKeyboard": False, "focusSearchbox": True}
    return {
        "icon": {"iconType": "SEARCH"},
        "placeholderText": runs("Search"),
        "config": {"webSearchboxConfig": config},
        "trackingParams": mark("search"),
        "searchEndpoint": command(
            "search", web=linked("/results?search_query=", "SEARCH", 4724, api=False), searchEndpoint={"query": ""}
        ),
        "clearButton": button(
            "STYLE_DEFAULT",
            "clear",
            **icon,
            accessibilityData=accessibility_label("Clear search query")["accessibility"],
        ),
        "showImageSourceDialog": command("image", showDialogCommand={"panelLoadingStrategy": strategy}),
    }

"""HTML building blocks of the simulated network's pages: pictures, cards, the sign-in window."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

STATIC = "https://static.licdn.com/aero-v1/sc/h"
GHOST = f"{STATIC}/cs8pjfgyw96g44ln9r7tct85f"

FULL_LINK = "base-card__full-link absolute top-0 right-0 bottom-0 left-0 p-0 z-[2] outline-offset-[4px]"
CARD = "base-card relative w-full hover:no-underline focus:no-underline base-card--link"
MAIN_TITLE = "base-main-card__title line-clamp-1 font-sans text-md font-bold text-color-text overflow-hidden"
_LABELS = (
    "sign_in_form_show_text sign_in_form_show_label sign_in_form_hide_text sign_in_form_hide_label "
    "username_error_empty username_error_too_long username_error_too_short password_error_empty "
    "password_error_too_short password_error_too_long"
)


class Markup:
    """Builds HTML. ``rendered``: as saved by a browser, with pictures loaded. ``light``: for a smaller page."""

    def __init__(self, *, rendered: bool, light: bool) -> None:
        self.rendered = rendered
        self.light = light

    def picture(self, url: str | None, classes: str = "hue-web-entity__image w-6 h-6") -> str:
        """Build an image element. If pictures are not loaded, its URL is in another attribute than ``src``."""
        source = escape(url or GHOST)
        if self.rendered:
            return f'<img class="inline-block relative {classes} lazy-loaded" aria-busy="false" src="{source}" alt>'
        return (
            f'<img class="inline-block relative\n          {classes}" data-delayed-url="{source}" '
            f'data-ghost-classes="bg-color-entity-ghost-background" data-ghost-url="{GHOST}" alt>'
        )

    def full_link(self, url: str, label: str, tracking: str = "public_profile") -> str:
        """Build the link that covers a whole card. ``tracking``: the name by which clicks on it are counted."""
        return (
            f'<a class="{FULL_LINK}" href="{escape(url)}" data-tracking-control-name="{tracking}" '
            f'data-tracking-will-navigate><span class="sr-only">\n            {escape(label)}\n          </span></a>'
        )

    def more_text(self, text: str) -> str:
        """Build a text. For a long text, build a short version, and the whole text behind a "Show more" button."""
        if not text:
            return ""
        whole = lines(text)
        if len(text) < 200:
            return f'<div class="show-more-less-text"><p class="show-more-less-text__text--less">{whole}</p></div>'
        return (
            f'<div class="show-more-less-text"><p class="show-more-less-text__text--less">{lines(text[:180])}…'
            '<button class="show-more-less-text__button show-more-less-button">Show more</button></p>'
            f'<p class="show-more-less-text__text--more">{whole}'
            '<button class="show-more-less-text__button show-more-less-button">Show less</button></p></div>'
        )

    def sign_in(self, name: str, slug: str, trk: str, photo: str | None) -> str:
        """Build the sign-in window, which contains the member's name and photo. A page contains it many times."""
        if self.light:
            return (
                '<div class="contextual-sign-in-modal"><div class="modal modal--contextual-sign-in"><h2>'
                f"Sign in to view {escape(name)}’s full profile</h2>{self.picture(photo)}</div></div>"
            )
        labels = "".join(
            f'<code id="i18n_{label}" style="display: none"><!--"{label.replace("_", " ").capitalize()}"--></code>\n'
            for label in _LABELS.split()
        )
        return _SIGN_IN.format(
            name=escape(name), slug=quote(slug), trk=trk, photo=self.picture(photo), labels=labels, static=STATIC
        )

    def section(self, name: str, title: str, content: str, *, kind: str = "") -> str:
        """Build a section of the profile, or "" if the section has no content."""
        if not content:
            return ""
        return (
            '<section class="core-section-container\n        core-section-container--with-border border-b-1 '
            f'border-solid border-color-border-faint py-4 {kind or name}" data-section="{name}">\n<!---->\n'
            f'  <h2 class="core-section-container__title section-title">\n    {escape(title)}\n  </h2>\n'
            f'  <div class="core-section-container__content break-words">\n{content}\n  </div>\n</section>\n'
        )

    def logo(self, url: str | None, page: str = "") -> str:
        """Build the logo in a card. The logo is a link if the company or school has a page."""
        shown = self.picture(url, "hue-web-entity__image w-6 h-6 profile-section-card__image")
        return f'<a class="profile-section-card__image-link" href="{tracked(page)}">{shown}</a>' if page else shown

    def card(self, heading: str, subtitle: str, body: str, logo: str = "", classes: str = "") -> str:
        """Build the card for a row, as in most lists. All arguments are HTML."""
        return (
            f'<li class="profile-section-card relative flex w-full list-none py-1.5 pr-2 pl-1 {classes}">\n<!---->'
            f'{logo or self.logo(None)}\n  <div class="pl-0.5 grow break-words">\n    <h3 class="[&amp;&gt;*]:mb-0 '
            f'text-[18px] text-color-text leading-regular group-hover:underline font-semibold">{heading}</h3>\n'
            f'    <h4 class="text-color-text text-md [&amp;&gt;*]:mb-0 not-first-middot">{subtitle}</h4>\n'
            f'    <div class="text-color-text-low-emphasis text-md [&amp;&gt;*]:mb-0">{body}</div>\n  </div>\n</li>\n'
        )


def show_more(rows: str, shown: int) -> str:
    """Build a list that initially shows only its first ``shown`` rows. All rows are in the HTML."""
    icon = '<icon class="show-more-less-button-icon"></icon>'
    return (
        f'<div class="show-more-less"><ul data-max-num-to-show="{shown}" class="show-more-less__list '
        f'show-more-less__list--hide-after-{shown} show-more-less__list--no-hidden-elems">{rows}</ul>'
        f'<button class="show-more-less-button show-more-less__button show-more-less__more-button">More{icon}</button>'
        '<button class="show-more-less-button show-more-less__button show-more-less__button--chevron '
        f'show-more-less__less-button show-more-less__button--hide">Less{icon}</button></div>'
    )


def heading(title: str, href: str = "") -> str:
    """Build a card's heading, with the title escaped. If ``href`` is given, the heading is a link."""
    shown = f"\n          {escape(title)}\n        "
    return f'<a class="link-styled" data-tracking-will-navigate href="{href}">{shown}</a>' if href else shown


def lines(text: str) -> str:
    """Escape a text, and replace its line breaks with ``<br>`` elements."""
    return escape(text).replace("\n", "<br>")


def tracked(url: str) -> str:
    """Build a link within the platform, with its tracking parameters."""
    return escape(f"{url}?trk=public_profile_link")


def redirected(url: str) -> str:
    """Build a link to an external page through the platform's redirect, or "" for an empty URL."""
    if not url:
        return ""
    target = quote(url, safe="").replace(".", "%2E")
    return escape(
        f"https://www.linkedin.com/redir/redirect?url={target}&urlhash=x7-_&trk=public_profile_topcard-website"
    )


def date_range(text: str, duration: str = "") -> str:
    """Build the HTML for two dates, or one date and "Present", and the duration between them."""
    if not text:
        return ""
    start, dash, end = text.partition(" - ")
    shown = f"<time>{start}</time>" + (f"{dash}{end if end == 'Present' else f'<time>{end}</time>'}" if dash else "")
    how_long = f'<span class="before:middot">{duration}</span>' if duration else "<!---->"
    return f'<span class="date-range text-color-text-secondary font-sans text-md">{shown}\n  {how_long}\n</span>'


_SIGN_IN = """
<div class="contextual-sign-in-modal {trk}" data-impression-id="public_profile_{trk}_contextual-sign-in-modal">
<div class>
  <div id="public_profile_{trk}_modal" class="modal modal--contextual-sign-in modal--contextual-sign-in-v2
      modal--contextual-sign-in-v2--stacked" data-outlet="public_profile_{trk}_modal">
  <div class="modal__overlay flex items-center bg-color-background-scrim justify-center fixed bottom-0 left-0 right-0
      top-0 opacity-0 invisible pointer-events-none z-[1000] transition-[opacity]
      ease-[cubic-bezier(0.25,0.1,0.25,1.0)] duration-[0.17s] py-4" aria-hidden="true">
  <section aria-modal="true" role="dialog" aria-labelledby="public_profile_{trk}_modal-modal-header" tabindex="-1"
      class="max-h-full modal__wrapper overflow-auto p-0 bg-color-surface max-w-[1128px] min-h-[160px] relative
      scale-[0.25] shadow-sm shadow-color-border-faint transition-[transform] duration-[0.33s] focus:outline-0
      w-[1128px] mamabear:w-[744px] babybear:w-[360px] rounded-md">
    <button class="modal__dismiss btn-tertiary h-[40px] w-[40px] p-0 rounded-full indent-0
        contextual-sign-in-modal__modal-dismiss absolute right-0 m-[20px] cursor-pointer" aria-label="Dismiss"
        data-tracking-control-name="public_profile_{trk}_contextual-sign-in-modal_modal_dismiss">
      <icon class="contextual-sign-in-modal__modal-dismiss-icon" data-delayed-url="{static}/gs508lg3t2o81tq7pmc"></icon>
    </button>
    <div class="modal__main w-full"><div class="flex overflow-hidden contextual-sign-in-modal__layout--stacked">
    <div class="contextual-sign-in-modal__left-content">
      <span class="contextual-sign-in-modal__img mx-auto">{photo}</span>
      <h2 class="contextual-sign-in-modal__context-screen-title font-sans text-lg text-color-text mt-2 mb-1"
          id="public_profile_{trk}_modal-modal-header">
        Sign in to view {name}’s full profile
      </h2>
      <div class="contextual-sign-in-modal__divider left-right-divider"></div>
      <p class="contextual-sign-in-modal__subtitle mt-1 mb-2 babybear:mx-0 text-center font-sans text-xs">
        <icon class="contextual-sign-in-modal__modal-subtitle-icon w-2 h-2" data-delayed-url="{static}/do16f8"></icon>
        <span>{name} can introduce you to 10+ people</span>
      </p>
    </div>
    <div class="contextual-sign-in-modal__right-content">
      <div class="contextual-sign-in-modal__google-sign-in-primary w-full"><div class="google-auth-button">
        <div class="google-auth-button__placeholder mx-auto" data-theme="filled_blue" data-logo-alignment="center"
            data-locale="en_US" role="button" aria-label="Continue with google"></div>
      </div></div>
      {labels}
      <form data-id="sign-in-form" action="https://www.linkedin.com/uas/login-submit" method="post" novalidate
          class="contextual-sign-in-modal__sign-in-form mb-1 hidden">
        <input name="loginCsrfParam" value="96890efc-8023-420f-8a0d-67eac635e544" type="hidden">
        <div class="flex flex-col">
          <div class="mt-1.5" data-js-module-id="guest-input"><div class="flex flex-col">
            <label class="input-label mb-1" for="{trk}_session_key">Email or phone</label>
            <div class="text-input flex"><input class="text-color-text font-sans text-md outline-0 bg-color-transparent
                w-full" autocomplete="username" id="{trk}_session_key" name="session_key" required type="text"></div>
          </div><p class="input-helper mt-1.5" role="alert" data-js-module-id="guest-input__message"></p></div>
          <div class="mt-1.5" data-js-module-id="guest-input"><div class="flex flex-col">
            <label class="input-label mb-1" for="{trk}_session_password">Password</label>
            <div class="text-input flex"><input class="text-color-text font-sans text-md outline-0 bg-color-transparent
                w-full" autocomplete="current-password" id="{trk}_session_password" name="session_password" required
                type="password"><button aria-live="assertive" aria-relevant="text" class="font-sans text-md font-bold
                text-color-action z-10 ml-[12px] hover:cursor-pointer" type="button">Show</button></div>
          </div><p class="input-helper mt-1.5" role="alert" data-js-module-id="guest-input__message"></p></div>
          <input name="session_redirect" value="https://www.linkedin.com/in/{slug}" type="hidden">
        </div>
        <div data-id="sign-in-form__footer" class="flex justify-between sign-in-form__footer--full-width">
          <a class="font-sans text-md font-bold link leading-regular sign-in-form__forgot-password--full-width"
              href="https://www.linkedin.com/uas/request-password-reset?trk={trk}_forgot_password">Forgot password?</a>
          <input name="trk" value="{trk}_sign-in-submit" type="hidden">
          <button class="btn-md btn-primary flex-shrink-0 cursor-pointer sign-in-form__submit-btn--full-width"
              data-id="sign-in-form__submit-btn" type="submit">Sign in</button>
        </div>
        <div class="sign-in-form__divider left-right-divider"><p class="sign-in-form__divider-text">or</p></div>
      </form>
      <button class="contextual-sign-in-modal__sign-in-with-email-cta my-2 btn-sm btn-secondary min-h-[40px] w-full">
        <icon class="inline-block align-middle h-[24px] w-[24px] mr-0.5" data-delayed-url="{static}/9w7euj0n5"></icon>
        <span class="self-center">Sign in with Email</span>
      </button>
      <div class="contextual-sign-in-modal__divider left-right-divider">
        <p class="contextual-sign-in-modal__divider-text font-sans text-sm text-color-text px-2">or</p>
      </div>
      <div class="contextual-sign-in-modal__google-sign-in-secondary
          contextual-sign-in-modal__google-sign-in-secondary--hidden"><div class="google-auth-button">
        <div class="google-auth-button__placeholder mx-auto google-auth-button__placeholder--black-border"
            data-theme="outline" data-locale="en_US" role="button" aria-label="Continue with google"></div>
      </div></div>
      <p class="contextual-sign-in-modal__join-now m-auto font-sans text-md text-center text-color-text my-2">
        New here? <a href="https://www.linkedin.com/signup/public-profile-join?vieweeVanityName={slug}&amp;trk={trk}"
            class="contextual-sign-in-modal__join-link" data-tracking-will-navigate="true">Join now</a>
      </p>
      <p class="linkedin-tc__text text-color-text-low-emphasis text-xs pb-2
          contextual-sign-in-modal__terms-and-conditions m-auto w-full">
        By clicking Continue to join or sign in, you agree to the
        <a href="/legal/user-agreement?trk=linkedin-tc_auth-button_user-agreement" target="_blank">User Agreement</a>,
        <a href="/legal/privacy-policy?trk=linkedin-tc_auth-button_privacy-policy" target="_blank">Privacy Policy</a>,
        and <a href="/legal/cookie-policy?trk=linkedin-tc_auth-button_cookie-policy" target="_blank">Cookie Policy</a>.
      </p>
    </div></div></div>
  </section></div></div>
</div></div>
"""

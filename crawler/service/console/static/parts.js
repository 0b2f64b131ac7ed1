// Components of results: numbers, prices, times, links, images. The views of platforms use them, too.

import { createContext, html, useContext, useState } from "./htm-preact.js";

export { html };

/** Whether the user has chosen to load the images of this result. */
export const Images = createContext(false);

const isFilled = (value) => value !== null && value !== undefined && value !== "";

/** A number with separators of thousands, or a dash. `digits`: how many it may have after the point. */
export const count = (value, digits = 3) =>
  Number.isFinite(value) || typeof value === "bigint" ? value.toLocaleString("en-US", { maximumFractionDigits: digits }) : "–";

/** A price with its currency, or a dash. Without a currency, it is only a number. */
export function price(value, currency) {
  if (!Number.isFinite(value)) return "–";
  if (!currency) return count(value);
  try {
    return value.toLocaleString("en-US", { style: "currency", currency });
  } catch {
    return `${count(value)} ${currency}`; // not a code of ISO 4217
  }
}

/** A length in seconds as hours, minutes and seconds: 3:54:01. */
export function duration(seconds) {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  return (parts[0] ? parts : parts.slice(1)).map((each, index) => (index ? String(each).padStart(2, "0") : each)).join(":");
}

/** A day, or a time that names its zone. The browser would take other times for those of its own zone. */
const WITH_ZONE = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:?\d\d))?$|^\w{3} \w{3} \d\d [\d:]{8} \+0000 \d{4}$/;

/** A time in UTC, from Unix seconds or text. Midnight is shown as a day. Text without a time zone stays as it is. */
export function When({ at }) {
  const date = new Date(typeof at === "number" ? at * 1000 : WITH_ZONE.test(at) ? at : NaN);
  if (!isFilled(at) || Number.isNaN(date.getTime())) return isFilled(at) ? html`<bdi>${String(at)}</bdi>` : "–";
  const [day, time] = date.toISOString().split("T");
  const shown = time.startsWith("00:00:00") ? day : `${day} ${time.slice(0, 5)}`;
  return html`<time dateTime=${date.toISOString()} title=${`${day} ${time.slice(0, 8)} UTC`}>${shown}</time>`;
}

const LONG_URL = 80;

/** The URL, if it is one that may be opened: only http and https. */
export function safeUrl(text) {
  if (!/^\s*https?:\/\//i.test(text)) return null; // quicker than an exception for each text of a long record
  try {
    const url = new URL(text);
    return ["http:", "https:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** A link that opens in a new tab. A value that is not a URL is shown as text. */
export function Link({ to, children }) {
  const url = safeUrl(to);
  const bare = String(to).replace(/^https?:\/\/(www\.)?/, "");
  const label = children ?? (bare.length > LONG_URL ? `${bare.slice(0, LONG_URL)}…` : bare);
  if (!url) return html`<bdi>${children ?? String(to)}</bdi>`;
  return html`<a class="link" href=${url} title=${url} target="_blank" rel="noopener noreferrer"><bdi>${label}</bdi></a>`;
}

/** An image of the platform, once the user has chosen to load images. */
export function Picture({ of, alt = "" }) {
  const url = useContext(Images) && safeUrl(of);
  return url ? html`<img class="picture" src=${url} alt=${alt} loading="lazy" referrerpolicy="no-referrer" />` : null;
}

const LONG = 600;

/** Text as the platform has it. Long text is cut, with a button that shows the rest. */
export function Text({ value }) {
  const [whole, setWhole] = useState(false);
  const text = String(value);
  if (text.length <= LONG) return html`<bdi class="text">${text}</bdi>`;
  const shown = whole ? text : `${text.slice(0, LONG)}…`;
  return html`<bdi class="text">${shown}</bdi> <button type="button" class="plain" aria-expanded=${String(whole)}
    onClick=${() => setWhole(!whole)}>${whole ? "Show less" : `Show all ${count(text.length)} characters`}</button>`;
}

/** Facts in a row, `[label, value]` each. Facts without a value are left out. */
export function Facts({ of }) {
  const shown = of.filter(([, value]) => isFilled(value) && value !== "–");
  return html`<dl class="line">${shown.map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** The top of a result: the name, the description and the most important figures. */
export function Heading({ title, link, sub, text, image, facts = [] }) {
  return html`<header class="heading">
    <${Picture} of=${image} />
    <div>
      <h3>${link ? html`<${Link} to=${link}>${title}<//>` : html`<bdi>${title}</bdi>`}</h3>
      ${sub && html`<p class="sub"><bdi>${sub}</bdi></p>`}
      ${text && html`<p><${Text} value=${text} /></p>`}
      <${Facts} of=${facts} />
    </div>
  </header>`;
}

/** A long list in steps: its first entries, and a button that shows more of them. */
export function useSteps(list, first, step) {
  const [limit, setLimit] = useState(first);
  const more = Math.min(step, list.length - limit);
  const text = limit + more < list.length ? `Show ${count(more)} more of ${count(list.length)}` : `Show all ${count(list.length)}`;
  const button = more > 0 && html`<button type="button" class="plain" onClick=${() => setLimit(limit + more)}>${text}</button>`;
  return [list.slice(0, limit), button];
}

/** Posts one below the other: `{text, link, at, by, kind, image, facts, inner}` each. */
export function Posts({ title, of }) {
  const [shown, more] = useSteps(of, 200, 500);
  if (!of.length) return html`<p class="none">${title}: none.</p>`;
  return html`<h4>${title} <span class="size">${count(of.length)}</span></h4>
    <ol class="posts">
      ${shown.map(
        (post) => html`<li>
          <div class="when">${post.at ? html`<${When} at=${post.at} />` : !post.kind && "–"}
            ${post.kind && html`<span class="kind">${post.kind}</span>`}</div>
          <div>
            ${post.by && html`<p class="sub"><bdi>${post.by}</bdi></p>`}
            <p>${post.text ? html`<${Text} value=${post.text} />` : html`<span class="none">Without text</span>`}</p>
            ${post.inner && html`<blockquote><${Text} value=${post.inner} /></blockquote>`}
            <${Picture} of=${post.image} />
            <${Facts} of=${[...(post.facts ?? []), ["", safeUrl(post.link) && html`<${Link} to=${post.link}>Open<//>`]]} />
          </div>
        </li>`,
      )}
    </ol>
    ${more}`;
}

/** The content envelope, which several platforms share: a profile and its items. */
export function Content({ data: { profile, posts } }) {
  return html`<${Heading} title=${profile.display_name} link=${profile.profile_link} image=${profile.profile_image}
      sub=${[profile.username && `@${profile.username}`, profile.location].filter(Boolean).join(" · ")}
      text=${profile.biography}
      facts=${[
        ["followers", count(profile.follower_count)],
        ["items", count(profile.content_count)],
        ["views", count(profile.total_views)],
        ["since", profile.account_creation_date && html`<${When} at=${profile.account_creation_date} />`],
      ]} />
    <${Posts} title="Items" of=${posts.map((post) => ({
      text: post.caption,
      link: post.content_link,
      at: post.published_date,
      kind: post.content_type,
      by: post.author_name !== profile.display_name && post.author_name,
      image: post.thumbnail_image || post.images[0],
      facts: [
        ["views", count(post.view_count)],
        ["likes", count(post.like_count)],
        ["comments", count(post.comment_count)],
        ["length", post.video_duration_seconds && duration(post.video_duration_seconds)],
      ],
    }))} />`;
}

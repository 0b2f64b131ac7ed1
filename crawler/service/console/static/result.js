// The response to a call: as a view, as JSON, and as code that makes the same call.

import { dataSchema, describeError, isSandbox, loadView, parsePartial, samples } from "./api.js";
import { described } from "./form.js";
import { html, useEffect, useErrorBoundary, useMemo, useRef, useState } from "./htm-preact.js";
import { count, Facts, Images, safeUrl } from "./parts.js";
import { Fields, kindOf } from "./record.js";

const LINES = 400; // lines of JSON in one block: the browser lays out only the blocks that are on the screen

const WHAT_TO_DO = {
  auth: "Enter a valid API key at the top of the page, then call again.",
  request: "Correct the call, then send it again.",
  target: "The call is correct, but the platform has no public data for this target. Retrying does not help.",
  upstream: "The call is correct, but the platform returned no data.",
  service: "The call is correct, but the service could not complete it. Its log has the details under the id of the request.",
};

/** What the caller can do about an error, in sentences. */
function whatToDo(error, status) {
  const wait = error.retry_after ? ` Retry in ${count(error.retry_after)} seconds or later.` : status.retryable ? " Retry later." : "";
  return (status.retryable && error.type === "request" ? "The call is correct." : WHAT_TO_DO[error.type] ?? "") + wait;
}

/** Why a call failed, and what to do. */
export function Failure({ answer, contract, onRetry }) {
  const { error, status } = answer.body ?? {};
  if (!error?.details || !status) // also JSON of a proxy in front of the service
    return html`<section class="notice failure" role="alert">
      <h3>No response</h3>
      <p>The service did not send a valid response. Check that it is still running.</p>
      ${answer.problem && html`<p class="none"><bdi>${answer.problem}</bdi></p>`}
      ${onRetry && html`<button type="button" onClick=${onRetry}>Try again</button>`}
    </section>`;
  const canRetry = onRetry && (status.retryable || error.type === "auth");
  const platform = [error.upstream?.status && `status ${error.upstream.status}`, error.upstream?.reason].filter(Boolean).join(", ");
  return html`<section class="notice failure" role="alert">
    <h3><code>${error.code}</code></h3>
    <p><bdi>${error.message}</bdi></p>
    ${error.details.length > 1 &&
    html`<ul>${error.details.map((each) => html`<li><code>${each.loc.join(".")}</code>: <bdi>${each.msg}</bdi></li>`)}</ul>`}
    <dl class="line">
      <div><dt>Occurs</dt><dd>${described(describeError(contract, error.code).replace(/^When/, "when"))}</dd></div>
      <div><dt>What to do</dt><dd>${whatToDo(error, status)}</dd></div>
      ${platform && html`<div><dt>Platform</dt><dd>${platform}</dd></div>`}
    </dl>
    <p class="retry">
      ${canRetry && html`<button type="button" onClick=${onRetry}>Try again</button>`}
      <a href=${safeUrl(error.doc_url) ?? `docs#${error.code}`} target="_blank" rel="noopener">Documentation of this error</a>
    </p>
  </section>`;
}

/** A button that copies text, and confirms it. */
function Copy({ text, label }) {
  const [done, setDone] = useState("");
  const copy = () =>
    navigator.clipboard.writeText(text).then(() => setDone("Copied"), () => setDone("The browser does not allow copying"));
  return html`<button type="button" class="plain" onClick=${copy} onBlur=${() => setDone("")}>${done || label}</button>`;
}

/** JSON in blocks. Characters that change the direction of text are escaped, so that they are visible. */
function Json({ value }) {
  const [text, blocks] = useMemo(() => {
    const invisible = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
    const escaped = (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`;
    const lines = JSON.stringify(value, null, 2).replace(invisible, escaped).split("\n");
    const block = (_, index) => lines.slice(index * LINES, (index + 1) * LINES).join("\n");
    return [lines.join("\n"), Array.from({ length: Math.ceil(lines.length / LINES) }, block)];
  }, [value]);
  return html`<p><${Copy} text=${text} label="Copy JSON" /> <span class="none">${count(text.length)} characters</span></p>
    <div class="code json" role="region" tabindex="0" aria-label="JSON">
      ${blocks.map((block) => html`<pre>${block}</pre>`)}
    </div>`;
}

function Samples({ scraper, params }) {
  return Object.entries(samples(scraper.name, params)).map(
    ([language, text]) => html`<section class="sample" key=${language}>
      <h4>${language} <${Copy} text=${text} label="Copy" /></h4>
      <pre class="code" role="region" tabindex="0" aria-label=${`The call in ${language}`}>${text}</pre>
    </section>`,
  );
}

/** The platform's own view. If it fails, the fields below still show the whole record. */
function PlatformView({ view, data, onFail }) {
  const [error] = useErrorBoundary(onFail);
  // One component per record: another one would forget which texts are open whenever the form changes.
  const shown = useMemo(() => html`<${({ of }) => view(of)} of=${data} />`, [view, data]);
  if (error) return html`<p class="none">The view of this platform cannot show this record.</p>`;
  return html`<div class="own">${shown}</div>`;
}

/** How many images a record names. */
function countImages(value, key = "") {
  if (value !== null && typeof value === "object")
    return Object.entries(value).reduce((sum, [inner, each]) => sum + countImages(each, Array.isArray(value) ? key : inner), 0);
  return typeof value === "string" && kindOf(key, value) === "image" ? 1 : 0;
}

function Record({ scraper, contract, data }) {
  const [view, setView] = useState({ isLoaded: false });
  const [showImages, setShowImages] = useState(false);
  const [isOpen, setOpen] = useState(undefined);
  const images = useMemo(() => countImages(data), [data]);
  useEffect(() => {
    loadView(scraper.platform).then((show) => setView({ isLoaded: true, show }), () => setView({ isLoaded: true }));
  }, [scraper.platform]);
  if (!view.isLoaded) return null;
  const allOpen = isOpen ?? !view.show;
  return html`<${Images.Provider} value=${showImages}>
    ${images > 0 && !isSandbox && !showImages &&
    html`<p class="none">
      <button type="button" class="plain" onClick=${() => setShowImages(true)}>Load ${count(images)} images</button> from the platform's servers.
    </p>`}
    ${view.show && html`<${PlatformView} view=${view.show} data=${data} onFail=${() => setOpen(true)} />`}
    <details class="all" open=${allOpen} onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>All fields</summary>
      ${allOpen && html`<${Fields} value=${data} schema=${dataSchema(contract, scraper.name)} contract=${contract} />`}
    </details>
  <//>`;
}

const TABS = ["View", "JSON", "Code"];

/** Tabs, which can also be chosen with the arrow keys. */
function Tabs({ chosen, onChoose }) {
  const list = useRef(null);
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (TABS.indexOf(chosen) + step + TABS.length) % TABS.length;
    onChoose(TABS[next]);
    list.current.children[next].focus();
  };
  return html`<div class="tabs" role="tablist" aria-label="Show the response as" ref=${list} onKeyDown=${move}>
    ${TABS.map((tab) => html`<button type="button" role="tab" id=${`tab-${tab}`} aria-controls="panel"
      aria-selected=${String(tab === chosen)} tabindex=${tab === chosen ? 0 : -1} onClick=${() => onChoose(tab)}>${tab}</button>`)}
  </div>`;
}

/** A path of a payload that could not be read, from the header `X-Partial`. */
function UnreadPart({ part }) {
  const where = part.of === "1" ? part.cause : `${part.cause} in ${part.rows} of ${part.of}`;
  const more = part.more ? `; ${part.more} more paths` : "";
  return html`<code>${part.path}</code> of <code>${part.source}</code>: ${where}${part.loses_rows ? ", not collected" : ""}${more}`;
}

/** The response to a call. */
export function Result({ scraper, contract, params, answer, onRetry }) {
  const [tab, setTab] = useState("View");
  const { body } = answer;
  const missing = parsePartial(answer.headers.get("X-Partial"));
  const [listings, unread] = [missing.filter((each) => each.collected), missing.filter((each) => each.path)];
  const sources = missing.filter((each) => !each.collected && !each.path);
  const facts = body?.meta && [
    ["took", `${count(body.meta.duration_ms)} ms`],
    ["billed", body.meta.billable ? "yes" : "no"],
    ["size", `${count(Math.ceil(answer.text.length / 1024))} KB`],
    ["cache", answer.headers.get("X-Cache")],
    ["request id", html`<code>${body.request_id}</code>`],
  ];
  const panels = {
    View: () =>
      body?.success
        ? html`<${Record} key=${body.request_id} scraper=${scraper} contract=${contract} data=${body.data} />`
        : html`<${Failure} answer=${answer} contract=${contract} onRetry=${onRetry} />`,
    JSON: () => html`<${Json} value=${body} />`,
    Code: () => html`<${Samples} scraper=${scraper} params=${params} />`,
  };
  return html`<section class="result" aria-label="Response">
    <div class="outcome">
      <strong class=${body?.success ? "good" : "bad"}>${body?.status?.code ?? "No response"}</strong>
      ${facts && html`<${Facts} of=${facts} />`}
    </div>
    ${missing.length > 0 &&
    html`<div class="notice warning" role="status"><h3>Partial record</h3>
      ${sources.length > 0 &&
      html`<p>The record is valid, but lacks the data of ${sources.length === 1 ? "a source" : "sources"} that failed:</p>
        <ul>${sources.map((each) => html`<li><code>${each.source}</code> (${each.reason}, ${each.code})</li>`)}</ul>`}
      ${listings.map((each) => html`<p>The listing is incomplete: ${each.collected}${each.expected ? ` of ${each.expected}` : ""} rows (${each.why}).</p>`)}
      ${unread.length > 0 &&
      html`<p>Parts of the platform's response could not be read:</p>
        <ul>${unread.map((each) => html`<li><${UnreadPart} part=${each} /></li>`)}</ul>`}</div>`}
    <${Tabs} chosen=${tab} onChoose=${setTab} />
    <div id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`}>${panels[tab]()}</div>
  </section>`;
}

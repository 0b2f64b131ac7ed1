// One scraper: its form, its calls and their responses, page by page.

import { nextParams, send } from "./api.js";
import { described, Form, paramsOf } from "./form.js";
import { html, useEffect, useRef, useState } from "./htm-preact.js";
import { count } from "./parts.js";
import { Result } from "./result.js";

const POLL_SECONDS = 2;
const POLL_PAUSE = 200; // milliseconds, because a service that shuts down responds at once

/** Sends a call in the background, and reads its state until it has a response. `onState` gets each state. */
async function callInBackground(scraper, params, headers, signal, onState) {
  const path = `v1/scrapers/${scraper.name}`;
  let answer = await send("POST", path, { params, headers: { ...headers, Prefer: "respond-async" }, signal });
  const id = answer.body?.request_id;
  while (answer.status === 202) {
    const position = answer.headers.get("X-Queue-Position");
    onState({ id, text: position ? `Waiting: position ${position} in the queue` : "Running" });
    await new Promise((resume) => setTimeout(resume, POLL_PAUSE));
    answer = await send("GET", `v1/calls/${id}`, { headers: { Prefer: `wait=${POLL_SECONDS}` }, signal });
  }
  return answer;
}

/** Seconds since a call was sent, counted while it is in progress. */
function Elapsed({ since }) {
  const [now, setNow] = useState(since);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [since]);
  return html`<span class="elapsed" aria-hidden="true">${Math.floor((now - since) / 1000)} s</span>`;
}

/** The errors of invalid params: param -> message. */
function problemsOf(answer) {
  const { code, details = [] } = answer?.body?.error ?? {};
  return code === "INVALID_REQUEST" ? Object.fromEntries(details.map((each) => [each.loc[0], each.msg])) : {};
}

/** The outcome of a call in a sentence, for screen readers. */
const spoken = (answer) => `${answer.body?.status?.code ?? "No response"}. ${answer.body?.status?.message ?? ""}`;

function Options({ options, onChange }) {
  const setWait = (event) => onChange({ ...options, wait: event.target.value.replace(/\D/g, "") });
  return html`<label>Wait up to
      <input type="text" inputmode="numeric" size="3" value=${options.wait} onInput=${setWait} />
      seconds</label>
    <label><input type="checkbox" checked=${options.isFresh} onChange=${(event) => onChange({ ...options, isFresh: event.target.checked })} />
      Ignore the cache</label>`;
}

export function Scraper({ scraper, contract, start }) {
  const [values, setValues] = useState(start);
  const [options, setOptions] = useState({ wait: "60", isFresh: false });
  const [pages, setPages] = useState([]);
  const [shown, setShown] = useState(0);
  const [pending, setPending] = useState(null);
  const answered = useRef(null);
  const latest = useRef(null);
  useEffect(() => () => latest.current?.abort(), []); // nobody would see the answer, and polling would go on for hours
  const hasBackground = "/v1/calls" in contract.paths;
  const page = pages[shown];
  useEffect(() => {
    if (page) answered.current.scrollIntoView();
  }, [page]);

  const call = async (params, { earlier = [], isBackground = false } = {}) => {
    const controller = new AbortController();
    const { signal } = controller;
    latest.current = controller;
    setPending({ controller, since: Date.now(), text: "Calling" });
    const headers = options.isFresh ? { "Cache-Control": "no-cache" } : {};
    const progress = (state) => setPending((before) => ({ ...before, ...state }));
    try {
      const answer = isBackground
        ? await callInBackground(scraper, params, headers, signal, progress)
        : await send("POST", `v1/scrapers/${scraper.name}`, { params, headers: { ...headers, Prefer: `wait=${options.wait}` }, signal });
      setPages([...earlier, { params, answer }]);
      setShown(earlier.length);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      setPending(null);
    }
  };
  const cancel = () => {
    pending.controller.abort();
    if (pending.id) send("DELETE", `v1/calls/${pending.id}`);
  };
  const params = () => paramsOf(scraper.params_schema, values);
  const following = page?.answer.body?.success ? nextParams(scraper, page.params, page.answer.body.data) : null;
  const next = () => (shown + 1 < pages.length ? setShown(shown + 1) : call(following, { earlier: pages }));

  return html`<h2>${scraper.name}</h2>
    <p class="summary">${described(scraper.summary)}${"/v1/jobs" in contract.paths &&
      html` For many links at once, <a href="#jobs">start a job</a>.`}</p>
    <${Form} scraper=${scraper} values=${values} problems=${problemsOf(page?.answer)} isPending=${pending}
      onChange=${setValues} onSubmit=${() => call(params())}>
      <div class="actions">
        <button type="submit" class="main" aria-disabled=${String(Boolean(pending))}>Call</button>
        ${hasBackground &&
        html`<button type="button" aria-disabled=${String(Boolean(pending))}
          onClick=${() => pending || call(params(), { isBackground: true })}>Call in the background</button>`}
        <${Options} options=${options} onChange=${setOptions} />
      </div>
    <//>
    <div ref=${answered} class=${page ? "answered" : ""}>
      <p role="status" class=${pending ? "pending" : "hidden"}>${pending ? pending.text : page && spoken(page.answer)}
        ${pending && html` · <${Elapsed} since=${pending.since} /> <button type="button" class="plain" onClick=${cancel}>Cancel</button>`}</p>
      ${page &&
      html`<${Result} key=${page.answer.body?.request_id} scraper=${scraper} contract=${contract} params=${page.params}
          answer=${page.answer} onRetry=${() => call(page.params, { earlier: pages.slice(0, shown) })} />
        ${(following || shown > 0) &&
        html`<nav class="pages" aria-label="Pages">
          <button type="button" aria-disabled=${String(shown === 0)} onClick=${() => shown > 0 && setShown(shown - 1)}>Previous page</button>
          <span>Page ${count(shown + 1)}</span>
          <button type="button" aria-disabled=${String(!following || Boolean(pending))}
            onClick=${() => following && !pending && next()}>Next page</button>
        </nav>`}`}
    </div>`;
}

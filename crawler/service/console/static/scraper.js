// One scraper: its form, its calls and their responses, page by page.

import { newKey, nextParams, send } from "./api.js";
import { described, Form, paramsOf } from "./form.js";
import { html, useEffect, useRef, useState } from "./htm-preact.js";
import { count } from "./parts.js";
import { Failure, Result } from "./result.js";

const WAIT_SECONDS = 120; // the longest wait that the endpoint accepts; a job waits for longer

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

export function Scraper({ scraper, contract, start }) {
  const [values, setValues] = useState(start);
  const [refused, setRefused] = useState(null);
  const [pages, setPages] = useState([]);
  const [shown, setShown] = useState(0);
  const [pending, setPending] = useState(null);
  const answered = useRef(null);
  const latest = useRef(null);
  const key = useRef(newKey());
  useEffect(() => () => latest.current?.abort(), []); // nobody would see the answer
  const hasJobs = "/v1/jobs" in contract.paths;
  const page = pages[shown];
  useEffect(() => {
    if (page) answered.current.scrollIntoView();
  }, [page]);

  const call = async (params, earlier = []) => {
    const controller = new AbortController();
    const { signal } = controller;
    latest.current = controller;
    setPending({ controller, since: Date.now() });
    setRefused(null);
    try {
      const headers = { Prefer: `wait=${WAIT_SECONDS}` };
      const answer = await send("POST", `v1/scrapers/${scraper.name}`, { params, headers, signal });
      setPages([...earlier, { params, answer }]);
      setShown(earlier.length);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      setPending(null);
    }
  };
  const startJob = async () => {
    if (pending) return;
    const headers = { "Idempotency-Key": key.current };
    const made = await send("POST", "v1/jobs", { params: [{ scraper: scraper.name, ...params() }], headers });
    if (made.status !== 202) return setRefused(made);
    document.getElementById("main").focus(); // the form, which has the focus, is left
    location.hash = `jobs/${made.body.job.job_id}`;
  };
  const change = (given) => {
    setValues(given);
    key.current = newKey();
  };
  const params = () => paramsOf(scraper.params_schema, values);
  const following = page?.answer.body?.success ? nextParams(scraper, page.params, page.answer.body.data) : null;
  const next = () => (shown + 1 < pages.length ? setShown(shown + 1) : call(following, pages));

  return html`<h2>${scraper.name}</h2>
    <p class="summary">${described(scraper.summary)}${hasJobs &&
      html` For many links at once, <a href="#jobs">start a job</a>.`}</p>
    <${Form} scraper=${scraper} values=${values} problems=${problemsOf(page?.answer)} isPending=${pending}
      onChange=${change} onSubmit=${() => call(params())}>
      <div class="actions">
        <button type="submit" class="main" aria-disabled=${String(Boolean(pending))}>Call</button>
        ${hasJobs && html`<button type="button" aria-disabled=${String(Boolean(pending))} onClick=${startJob}>As a job</button>`}
      </div>
    <//>
    <div ref=${answered} class=${page ? "answered" : ""}>
      <p role="status" class=${pending ? "pending" : "hidden"}>${pending ? "Calling" : page && spoken(page.answer)}
        ${pending &&
        html` · <${Elapsed} since=${pending.since} /> <button type="button" class="plain" onClick=${() => pending.controller.abort()}>Cancel</button>`}</p>
      ${refused && html`<${Failure} answer=${refused} contract=${contract} onRetry=${startJob} />`}
      ${page &&
      html`<${Result} key=${page.answer.body?.request_id} scraper=${scraper} contract=${contract} params=${page.params}
          answer=${page.answer} onRetry=${() => call(page.params, pages.slice(0, shown))} />
        ${(following || shown > 0) &&
        html`<nav class="pages" aria-label="Pages">
          <button type="button" aria-disabled=${String(shown === 0)} onClick=${() => shown > 0 && setShown(shown - 1)}>Previous page</button>
          <span>Page ${count(shown + 1)}</span>
          <button type="button" aria-disabled=${String(!following || Boolean(pending))}
            onClick=${() => following && !pending && next()}>Next page</button>
        </nav>`}`}
    </div>`;
}

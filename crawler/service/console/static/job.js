// One job, from `/v1/jobs/<job_id>`: its progress, errors by code, and its records as files.

import { dataSchema, describeError, download, firstLines, listPaths, resolve, send, usePolled } from "./api.js";
import { described } from "./form.js";
import { html, useEffect, useRef, useState } from "./htm-preact.js";
import { count, Facts, Text, When } from "./parts.js";
import { Failure } from "./result.js";

const READ_SECONDS = 2;
const FAILURES = 20; // failures of a code that are shown

/** The formats of records, those for people first: name, and the title and kind of the format. */
function formatsOf(contract) {
  const parameters = contract.paths["/v1/jobs/{job_id}/records"].get.parameters.map((each) => resolve(contract, each));
  const { schema } = parameters.find(({ name }) => name === "format");
  return Object.entries(schema["x-formats"]).reverse();
}

const failedOf = ({ failed, dead }) => failed + dead;

/** How many targets a retry starts again: those whose errors may pass. */
const retriedOf = ({ failures }) => failures.reduce((sum, each) => sum + (each.retryable ? each.count : 0), 0);

const sentence = (text) => text[0].toUpperCase() + text.slice(1);
const some = (number) => (number ? count(number) : "");

/** Whether a job is done or cancelled: it can no longer be cancelled, but deleted. */
export const isEnded = ({ state }) => state === "done" || state === "cancelled";

/** Whether nothing of a job will change, unless it is retried. */
export const isStill = (job) => isEnded(job) && !job.targets.running && !job.targets.waiting;

/** The state of a job, for people. */
export const stateOf = ({ state }) => (state === "open" ? "in progress" : state);

/** The run of a job, for people: a job without a name of its own has the id of its request as its name. */
export const runOf = ({ name, run }) => (name.startsWith("req_") && run === 1 ? "" : `${name} · run ${run}`);

/** How many targets have an outcome, as a bar. */
export function Progress({ targets }) {
  const [done, failed] = [targets.done, failedOf(targets)];
  const text = `${count(done + failed)} of ${count(targets.total)} targets have an outcome, ${count(failed)} failed`;
  return html`<svg class="progress" role="img" aria-label=${text} viewBox=${`0 0 ${targets.total || 1} 1`} preserveAspectRatio="none">
    <rect class="good" width=${done} height="1" /><rect class="failed" x=${done} width=${failed} height="1" />
  </svg>`;
}

/** The params of a target in a line, or the text of a line that is not a target. */
const briefly = (params) =>
  params && typeof params === "object" ? Object.entries(params).map(([name, value]) => `${name}=${value}`).join(", ") : String(params ?? "");

/** The first failures of a code. `number`: how many there are; they are read again when it changes. */
function Failures({ id, code, number }) {
  const [lines, setLines] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    firstLines(`v1/jobs/${id}/failures?code=${encodeURIComponent(code)}`, FAILURES).then(setLines, (error) => setProblem(String(error.message)));
  }, [number]);
  if (problem) return html`<p class="bad">The failures cannot be read: ${problem}</p>`;
  if (!lines) return html`<p role="status">Loading …</p>`;
  return html`<ul class="failures">${lines.map((each) => html`<li>
      <${Text} value=${each.message} />
      <span class="none">${each.line && `line ${each.line} · `}${each.scraper} <${Text} value=${briefly(each.params)} /></span>
    </li>`)}</ul>
    ${number > lines.length && html`<p class="none">The first ${count(lines.length)} are shown. The file of failures has all.</p>`}`;
}

/** An error code with the number of its failures, to open. */
function Code({ id, code, number, contract }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details class="nested" open=${isOpen} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><code class="bad">${code}</code> <span class="size">${count(number)}</span></summary>
    ${isOpen && html`<p class="none">${described(describeError(contract, code))}</p>
      <${Failures} id=${id} code=${code} number=${number} />`}
  </details>`;
}

/** The controls that save the records so far as a file. */
function Download({ job, contract }) {
  const [scraper, setScraper] = useState("");
  const [explode, setExplode] = useState("");
  const [{ controller: reading, size, saved, answer }, setState] = useState({});
  const chosen = scraper ? [scraper] : job.scrapers;
  const isKnown = (name) => `/v1/scrapers/${name}` in contract.paths; // an older version made the job, perhaps
  const lists = (name) => (isKnown(name) ? listPaths(contract, dataSchema(contract, name)) : []);
  const paths = [...new Set(chosen.flatMap(lists))];
  const list = paths.includes(explode) ? explode : "";
  const held = list ? chosen.filter((each) => lists(each).includes(list)) : chosen;
  const save = async (route, name) => {
    if (reading) return;
    const controller = new AbortController();
    const onSize = (bytes) => setState({ controller, size: bytes });
    onSize(0);
    try {
      const failed = await download(`v1/jobs/${job.job_id}/${route}`, name, { signal: controller.signal, onSize });
      setState(failed ? { answer: failed } : { saved: name });
    } catch {
      setState({}); // the user has cancelled it
    }
  };
  const saveAs = (format) => {
    const query = new URLSearchParams({ format, ...(scraper && { scraper }), ...(list && { explode: list }) });
    save(`records?${query}`, [`job-${job.job_id}`, scraper, list].filter(Boolean).join("-") + `.${format}`);
  };
  return html`<h3>${isStill(job) ? "Download" : "Download the records so far"}</h3>
    <div class="choices">
      ${job.scrapers.length > 1 &&
      html`<label>Records of <select value=${scraper} onChange=${(event) => setScraper(event.target.value)}>
        <option value="">all scrapers</option>
        ${job.scrapers.map((each) => html`<option value=${each}>${each}</option>`)}
      </select></label>`}
      ${paths.length > 0 &&
      html`<label>One row for each <select value=${list} onChange=${(event) => setExplode(event.target.value)}>
        <option value="">target</option>
        ${paths.map((each) => html`<option value=${each}>entry of ${each}</option>`)}
      </select></label>`}
    </div>
    ${paths.length > 0 && !list &&
    html`<p class="none">In Excel and CSV, a list is one cell, unless you choose a row for each of its entries.</p>`}
    ${list && held.length < chosen.length && html`<p class="none">Only records of ${held.join(", ")} have this list.</p>`}
    <div class="actions">
      ${formatsOf(contract).map(([format, { title }], index) => {
        const isOff = Boolean(reading);
        return html`<button type="button" class=${index === 0 ? "main" : ""} aria-disabled=${String(isOff)}
          onClick=${() => isOff || saveAs(format)}>${title}</button>`;
      })}
      ${failedOf(job.targets) > 0 &&
      html`<button type="button" class="plain"
        onClick=${() => save("failures", `job-${job.job_id}-failures.jsonl`)}>Failures as JSON Lines</button>`}
    </div>
    ${held.length > 1 && html`<p class="none">CSV is one table, of scrapers with equal columns: else choose one.</p>`}
    <p role="status" class="none">
      ${saved && `The browser has saved ${saved}.`}
      ${reading && html`Reading: ${count(Math.ceil(size / 1024))} KB <button type="button" class="plain"
        onClick=${() => reading.abort()}>Cancel</button>`}
    </p>
    ${answer && html`<${Failure} answer=${answer} contract=${contract} />`}`;
}

/** The buttons that change a job. Requests that fail are shown. */
function Changes({ job, contract, onChange, onLeave }) {
  const [isSure, setSure] = useState(false);
  const [answer, setAnswer] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const busy = useRef(false); // a second click comes before the page shows the first
  const path = `v1/jobs/${job.job_id}`;
  const run = (change) => async () => {
    if (busy.current) return;
    const set = (value) => setBusy((busy.current = value));
    set(true);
    const changed = await change();
    set(false);
    setAnswer(changed && changed.status >= 300 ? changed : null);
    await onChange();
  };
  const retry = run(() => send("POST", `${path}/retry`));
  const cancel = run(async () => {
    const now = await send("GET", path); // DELETE would delete a job that has ended in the meantime
    return now.status === 200 && isEnded(now.body) ? null : send("DELETE", path);
  });
  const remove = run(async () => {
    onLeave(true); // while the service deletes the records, it no longer finds the job
    const removed = await send("DELETE", path);
    onLeave(false);
    if (removed.status !== 204) return removed;
    if (location.hash !== `#jobs/${job.job_id}`) return null;
    document.getElementById("main").focus();
    location.hash = "jobs";
    return null;
  });
  const button = (title, onClick) => html`<button type="button" aria-disabled=${String(isBusy)} onClick=${onClick}>${title}</button>`;
  return html`<div class="actions">
      ${job.state !== "cancelled" && retriedOf(job) > 0 && button(`Retry ${count(retriedOf(job))} failed`, retry)}
      ${!isEnded(job) && button("Cancel job", cancel)}
      ${isEnded(job) && !isSure && button("Delete job", () => setSure(true))}
      ${isEnded(job) && isSure &&
      html`<span>Delete the job with its records?</span> ${button("Delete", remove)} ${button("Keep", () => setSure(false))}`}
      <span role="status" class="none">${isBusy && "Sending …"}</span>
    </div>
    ${answer && html`<${Failure} answer=${answer} contract=${contract} />`}`;
}

export function Job({ id, contract }) {
  const isLast = ({ status, body }) => status === 404 || (status === 200 && isStill(body));
  const [answer, load] = usePolled(`v1/jobs/${id}`, READ_SECONDS, isLast);
  const title = html`<p><a href="#jobs">All jobs</a></p><h2>Job ${id}</h2>`;
  const last = useRef(null);
  const [isLeaving, setLeaving] = useState(false);
  if (!answer) return html`${title}<p role="status">Loading …</p>`;
  if (answer.status === 200) last.current = answer.body;
  const failure = answer.status !== 200 && !isLeaving && html`<${Failure} answer=${answer} contract=${contract} onRetry=${load} />`;
  const job = last.current;
  if (!job) return html`${title}${failure}`;
  const { targets } = job;
  return html`${title}${failure}
    <p class="summary" role="status">${sentence(stateOf(job))}${isStill(job) &&
      `: ${count(targets.done)} with a record, ${count(failedOf(targets))} failed`}.</p>
    <${Progress} targets=${targets} />
    <${Facts} of=${[
      ["run", runOf(job) && html`<${Text} value=${runOf(job)} />`],
      ["previous run", job.previous && html`<a href=${`#jobs/${job.previous}`}>Job ${job.previous}</a>`],
      ["targets", count(targets.total)],
      ["with a record", count(targets.done)],
      ["failed", some(failedOf(targets))],
      ["waiting", some(targets.waiting)],
      ["in flight", some(targets.running)],
      ["cancelled", some(targets.cancelled)],
      ["started", html`<${When} at=${job.created_at} />`],
      ["ended", job.ended_at && html`<${When} at=${job.ended_at} />`],
      ["targets a minute", some(job.targets_per_minute)],
      ["estimated end", job.estimated_end && html`<${When} at=${job.estimated_end} />`],
      ["kept until", job.expires_at && html`<${When} at=${job.expires_at} />`],
    ]} />
    <${Changes} job=${job} contract=${contract} onChange=${load} onLeave=${setLeaving} />
    ${targets.done > 0 && html`<${Download} job=${job} contract=${contract} />`}
    ${failedOf(targets) > 0 && html`<h3>Errors</h3>
      ${Object.entries(job.codes).map(([code, number]) => code !== "OK" &&
        html`<${Code} key=${code} id=${id} code=${code} number=${number} contract=${contract} />`)}`}`;
}

// The client's jobs, from `/v1/jobs`: a form that starts one from links or a file, and a list.

import { newKey, send, usePolled } from "./api.js";
import { html, useLayoutEffect, useRef, useState } from "./htm-preact.js";
import { isStill, Job, Progress, runOf, stateOf } from "./job.js";
import { count, Text, When } from "./parts.js";
import { Failure } from "./result.js";

const READ_SECONDS = 5;

/** The media types of targets files, by the end of their names. Other files are read as lines. */
const TYPES = {
  csv: "text/csv",
  tsv: "text/tab-separated-values",
  json: "application/json",
  jsonl: "application/x-ndjson",
  ndjson: "application/x-ndjson",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
};
function typeOf(file) {
  const ending = file.name.split(".").pop().toLowerCase();
  return TYPES[ending.startsWith("xls") ? "xlsx" : ending] ?? "text/plain"; // the service explains that it does not read .xls
}

const LINK = /https?:\/\/[^\s"<>]+?(?=[,;]?(?:[\s"<>]|$)|[,;]https?:)/gi;

/** Pasted text with each link in a line of its own, without bullets and quotes. Other lines stay, and so does a table. */
export function tidy(text) {
  const lines = text.trim().split(/\s*\n\s*/);
  const isTable = /[,;\t]/.test(lines[0]) && !/https?:/i.test(lines[0]);
  return isTable ? text : lines.flatMap((line) => line.match(LINK) ?? [line]).join("\n");
}

/** Lets the user drop a file anywhere on the page. Returns whether one is over it. */
function useDrop(onFiles) {
  const [isOver, setOver] = useState(false);
  useLayoutEffect(() => {
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
    const over = (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event) => event.relatedTarget || setOver(false);
    const drop = (event) => {
      setOver(false);
      if (!hasFiles(event)) return;
      event.preventDefault(); // the browser would open the file in place of the console
      onFiles([...event.dataTransfer.files]);
    };
    const listeners = { dragover: over, dragleave: leave, drop };
    for (const [name, listener] of Object.entries(listeners)) addEventListener(name, listener);
    return () => Object.entries(listeners).forEach(([name, listener]) => removeEventListener(name, listener));
  }, []);
  return isOver;
}

/** What a check of the lines found. */
function Checked({ answer, contract }) {
  if (answer.status !== 200) return html`<${Failure} answer=${answer} contract=${contract} />`;
  const { valid, invalid, invalid_lines: lines, records_at_most: most } = answer.body;
  return html`<div class=${`notice ${invalid ? "warning" : ""}`} role="status">
    <p>${count(valid)} ${valid === 1 ? "line is a target" : "lines are targets"}, ${count(invalid)} ${invalid === 1 ? "is" : "are"} not.
      ${most !== null && ` At most ${count(most)} ${most === 1 ? "record is" : "records are"} billed.`}</p>
    ${lines.length > 0 && html`<ul>${lines.map((each) => html`<li><bdi>${each.message}</bdi></li>`)}</ul>`}
    ${invalid > lines.length && html`<p>Only the first ${count(lines.length)} are shown.</p>`}
  </div>`;
}

function NewJob({ scrapers, contract }) {
  const [text, setText] = useState("");
  const [file, setFile] = useState(null);
  const [scraper, setScraper] = useState("");
  const [pending, setPending] = useState("");
  const [answer, setAnswer] = useState(null);
  const key = useRef(newKey());
  const change = (set) => (value) => {
    set(value);
    setAnswer(null);
    key.current = newKey();
  };
  const choose = (files) => files.length && change(setFile)(files[0]);
  const isOver = useDrop(choose);
  const isEmpty = !file && !text.trim();
  const post = async (isDry) => {
    if (pending || isEmpty) return;
    setPending(isDry ? "Checking …" : "Sending …");
    const content = file ?? tidy(text);
    if (!file) setText(content); // the messages name its lines
    const query = new URLSearchParams({ ...(scraper && { scraper }), ...(isDry && { dry_run: "true" }) });
    const type = { "Content-Type": file ? typeOf(file) : "text/plain; charset=utf-8" };
    const headers = isDry ? type : { ...type, "Idempotency-Key": key.current };
    const made = await send("POST", `v1/jobs?${query}`, { content, headers });
    setPending("");
    if (made.status !== 202) return setAnswer(made);
    document.getElementById("main").focus(); // the form, which has the focus, is left
    location.hash = `jobs/${made.body.job.job_id}`;
  };
  const submit = (event) => {
    event.preventDefault();
    post(false);
  };
  const isOff = String(Boolean(pending) || isEmpty);
  return html`<form class=${`upload ${isOver ? "over" : ""}`} onSubmit=${submit} aria-label="New job">
    ${file
      ? html`<p class="file"><bdi>${file.name}</bdi> <span class="none">${count(Math.ceil(file.size / 1024))} KB</span>${" "}
          <button type="button" class="plain" onClick=${() => change(setFile)(null)}>Remove</button></p>`
      : html`<label for="targets">Links, one in each line</label>
          <textarea id="targets" rows="8" spellcheck=${false} autocomplete="off" value=${text}
            onInput=${(event) => change(setText)(event.target.value)}></textarea>`}
    <div class="actions">
      <label class="button">${file ? "Choose another file" : "Or choose a file"}
        <input type="file" class="hidden" accept=${Object.keys(TYPES).map((each) => `.${each}`).concat(".txt").join()}
          onChange=${(event) => choose([...event.target.files])} /></label>
      <span class="none">CSV, Excel, JSON or text. You can also drop it on this page.</span>
    </div>
    <label class="default">Lines that are not links are read by
      <select value=${scraper} onChange=${(event) => change(setScraper)(event.target.value)}>
        <option value="">no scraper, unless a column names it</option>
        ${scrapers.map((each) => html`<option value=${each.name}>${each.name}</option>`)}
      </select></label>
    <div class="actions">
      <button type="submit" class="main" aria-disabled=${isOff}>Start job</button>
      <button type="button" aria-disabled=${isOff} onClick=${() => post(true)}>Check only</button>
      <span role="status" class="none">${pending}</span>
    </div>
    ${answer && html`<${Checked} answer=${answer} contract=${contract} />`}
  </form>`;
}

function Row({ job }) {
  const { total, failed, dead } = job.targets;
  return html`<tr>
    <td class="name-cell"><a href=${`#jobs/${job.job_id}`}>Job ${job.job_id}</a>
      ${runOf(job) && html`<div class="none"><${Text} value=${runOf(job)} /></div>`}</td>
    <td><${When} at=${job.created_at} /></td>
    <td>${stateOf(job)}</td>
    <td class="number">${count(total)}</td>
    <td class="number">${count(failed + dead)}</td>
    <td class="share"><${Progress} targets=${job.targets} /></td>
  </tr>`;
}

function List({ contract }) {
  const isAllDone = (answer) => answer.status === 200 && answer.body.jobs.every(isStill);
  const [list, load] = usePolled("v1/jobs", READ_SECONDS, isAllDone);
  if (!list) return html`<p role="status">Loading …</p>`;
  if (list.status !== 200) return html`<${Failure} answer=${list} contract=${contract} onRetry=${load} />`;
  const { jobs, next_after: next } = list.body;
  if (!jobs.length) return html`<p class="none">No jobs yet.</p>`;
  return html`<div class="scroll" role="region" tabindex="0" aria-label="Jobs"><table class="jobs">
      <thead><tr>
        ${["job", "started", "state"].map((title) => html`<th scope="col">${title}</th>`)}
        ${["targets", "failed"].map((title) => html`<th scope="col" class="number">${title}</th>`)}
        <th scope="col">progress</th>
      </tr></thead>
      <tbody>${jobs.map((each) => html`<${Row} key=${each.job_id} job=${each} />`)}</tbody>
    </table></div>
    ${next && html`<p class="none">The newest ${count(jobs.length)} are shown.</p>`}`;
}

export function Jobs({ opened, contract, scrapers }) {
  if (/^\d+$/.test(opened)) return html`<${Job} key=${opened} id=${opened} contract=${contract} />`;
  return html`<h2>Jobs</h2>
    <p class="summary">A job collects many links in the background. Its records are one file: Excel, CSV or JSON.</p>
    <${NewJob} scrapers=${scrapers} contract=${contract} />
    <h3 class="list">Your jobs</h3>
    <${List} contract=${contract} />`;
}

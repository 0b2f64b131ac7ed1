// The client's calls by day, from `/v1/usage`.

import { send } from "./api.js";
import { html, useEffect, useState } from "./htm-preact.js";
import { count, Facts } from "./parts.js";
import { Bars, Legend } from "./plot.js";
import { Failure } from "./result.js";

const DAY = 86_400_000;
const NAMES = { billable: "billed", free: "succeeded, not billed", failed: "failed" };

/** All days of a report, with the sums over its scrapers. */
function daysOf(report) {
  const days = [];
  for (let at = Date.parse(report.from); at <= Date.parse(report.to); at += DAY) {
    const day = new Date(at).toISOString().slice(0, 10);
    const own = report.usage.filter((each) => each.day === day);
    const sum = (of) => own.reduce((total, each) => total + of(each), 0);
    const calls = sum((each) => each.calls);
    const succeeded = sum((each) => each.outcomes.OK ?? 0);
    const parts = { billable: sum((each) => each.billable), free: 0, failed: calls - succeeded };
    parts.free = Math.max(succeeded - parts.billable, 0);
    const title = `${day}: ${count(calls)} calls, ${count(parts.billable)} billed, ${count(parts.failed)} failed`;
    days.push({ label: day, title, parts });
  }
  return days;
}

export function Usage({ contract }) {
  const [answer, setAnswer] = useState(null);
  const load = () => send("GET", "v1/usage").then(setAnswer);
  useEffect(() => void load(), []);
  if (!answer) return html`<h2>Usage</h2><p role="status">Loading …</p>`;
  if (answer.status !== 200) return html`<h2>Usage</h2><${Failure} answer=${answer} contract=${contract} onRetry=${load} />`;
  const report = answer.body;
  return html`<h2>Usage</h2>
    <p class="summary">The calls of <bdi>${report.client_id}</bdi> by day, from <time>${report.from}</time> to <time>${report.to}</time> (UTC).</p>
    <${Facts} of=${[
      ["calls", count(report.calls)],
      ["billed", count(report.billable)],
      ["partial records", count(report.partial)],
      ["not stored yet", report.pending ? count(report.pending) : ""],
    ]} />
    <${Bars} bars=${daysOf(report)} names=${Object.keys(NAMES)}
      label=${`Calls by day: ${count(report.calls)} in all, ${count(report.billable)} billed`} />
    <${Legend} names=${NAMES} />
    ${report.usage.length > 0 &&
    html`<div class="scroll" role="region" tabindex="0" aria-label="Usage by day and scraper"><table>
      <thead><tr>
        <th scope="col">day</th><th scope="col">scraper</th>
        ${["calls", "billed", "partial"].map((title) => html`<th scope="col" class="number">${title}</th>`)}
        <th scope="col">by code</th>
      </tr></thead>
      <tbody>${report.usage.map((each) => html`<tr>
        <td class="time">${each.day}</td><td class="name-cell">${each.scraper}</td>
        ${[each.calls, each.billable, each.partial].map((number) => html`<td class="number">${count(number)}</td>`)}
        <td>${Object.entries(each.outcomes).map(([code, number]) => `${code} ${count(number)}`).join(", ")}</td>
      </tr>`)}</tbody>
    </table></div>`}
    <p><button type="button" onClick=${load}>Read again</button></p>`;
}

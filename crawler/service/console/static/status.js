// Whether the service accepts calls, from `/readyz`, and the outcomes of the client's calls of today, from `/v1/usage`.

import { usePolled } from "./api.js";
import { html } from "./htm-preact.js";
import { count } from "./parts.js";
import { Failure } from "./result.js";

const READ_SECONDS = 5;
const STATES = {
  ready: "The service accepts calls.",
  draining: "The service is shutting down, and accepts no calls.",
  broken: "The crawlers of all platforms fail to start.",
};

export function Status({ contract }) {
  const today = new Date().toISOString().slice(0, 10); // in UTC, as usage is counted
  const [ready, readAgain] = usePolled("readyz", READ_SECONDS);
  const [usage, load] = usePolled(`v1/usage?from=${today}&to=${today}`, READ_SECONDS);
  const title = html`<h2>Status</h2>`;
  if (!ready || !usage) return html`${title}<p role="status">Loading …</p>`;
  if (!ready.body?.status || usage.status !== 200) {
    const again = () => (readAgain(), load());
    return html`${title}<${Failure} answer=${usage.status === 200 ? ready : usage} contract=${contract} onRetry=${again} />`;
  }
  const { status, broken } = ready.body;
  const rows = usage.body.usage;
  return html`${title}
    <p class=${`notice ${status === "ready" ? "" : "failure"}`} role="status">${STATES[status]}
      ${broken.length > 0 && html` These crawlers fail to start: ${broken.join(", ")}.`}</p>
    <h3>Calls of today (UTC)</h3>
    ${rows.length === 0
      ? html`<p class="none">No calls yet.</p>`
      : html`<div class="scroll" role="region" tabindex="0" aria-label="Calls of today by scraper"><table>
          <thead><tr><th scope="col">scraper</th><th scope="col" class="number">calls</th><th scope="col">by code</th></tr></thead>
          <tbody>${rows.map((each) => html`<tr key=${each.scraper}>
            <td class="name-cell">${each.scraper}</td><td class="number">${count(each.calls)}</td>
            <td>${Object.entries(each.outcomes).map(([code, number]) => `${code} ${count(number)}`).join(", ")}</td>
          </tr>`)}</tbody>
        </table></div>`}`;
}

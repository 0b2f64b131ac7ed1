// The client's background calls, from `/v1/calls`: their states and responses.

import { send, usePolled } from "./api.js";
import { html, useState } from "./htm-preact.js";
import { count, When } from "./parts.js";
import { Failure, Result } from "./result.js";

const READ_SECONDS = 3;
const MAX_PARAMS = 80;

function Row({ call, onOpen, onDelete }) {
  const params = JSON.stringify(call.params);
  const cut = params.length > MAX_PARAMS ? `${params.slice(0, MAX_PARAMS)}…` : params;
  const isDone = call.state === "done";
  return html`<tr>
    <td><${When} at=${call.accepted_at} /></td>
    <td>${call.scraper}<br /><span class="none" title=${params}><bdi>${cut}</bdi></span></td>
    <td>${isDone ? html`<span class=${call.code === "OK" ? "good" : "bad"}>${call.code}</span>` : call.state}</td>
    <td>${call.completed_at ? html`<${When} at=${call.completed_at} />` : "–"}</td>
    <td class="buttons">${isDone && html`<button type="button" class="plain" onClick=${onOpen}>Open</button> `}
      <button type="button" class="plain" onClick=${onDelete}>${isDone ? "Delete" : "Cancel"}</button></td>
  </tr>`;
}

export function Calls({ contract, scrapers }) {
  const [list, load] = usePolled("v1/calls", READ_SECONDS);
  const [opened, setOpened] = useState(null);
  const open = async (call) => setOpened({ call, answer: await send("GET", `v1/calls/${call.request_id}`) });
  const remove = async (call) => {
    await send("DELETE", `v1/calls/${call.request_id}`);
    if (opened?.call.request_id === call.request_id) setOpened(null);
    await load();
  };
  const title = html`<h2>Background calls</h2>`;
  if (!list) return html`${title}<p role="status">Loading …</p>`;
  if (list.status !== 200) return html`${title}<${Failure} answer=${list} contract=${contract} onRetry=${load} />`;
  const { calls, counts } = list.body;
  const all = counts.waiting + counts.running + counts.done;
  return html`${title}
    <p class="summary" role="status">${count(counts.waiting)} waiting, ${count(counts.running)} running, ${count(counts.done)} done.
      ${all > calls.length && ` The newest ${count(calls.length)} are shown.`}</p>
    ${calls.length === 0
      ? html`<p class="none">No calls. The form of each scraper has the button “Call in the background”.</p>`
      : html`<div class="scroll" role="region" tabindex="0" aria-label="Background calls"><table>
          <thead><tr>
            ${["accepted", "call", "state", "completed"].map((title) => html`<th scope="col">${title}</th>`)}
            <th scope="col"><span class="hidden">Actions</span></th>
          </tr></thead>
          <tbody>${calls.map((call) => html`<${Row} key=${call.request_id} call=${call}
            onOpen=${() => open(call)} onDelete=${() => remove(call)} />`)}</tbody>
        </table></div>`}
    ${opened && html`<h3>${opened.call.scraper}</h3>
      <${Result} key=${opened.call.request_id} contract=${contract} params=${opened.call.params} answer=${opened.answer}
        scraper=${scrapers.find((each) => each.name === opened.call.scraper)} />`}`;
}

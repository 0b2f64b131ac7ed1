// The state of each platform and the outcomes of the last hour, from `/v1/status`, read again every few seconds.

import { usePolled } from "./api.js";
import { html } from "./htm-preact.js";
import { count, Facts, When } from "./parts.js";
import { Bars, Legend } from "./plot.js";
import { Failure } from "./result.js";

const READ_SECONDS = 5;
const NAMES = { good: "with a record", failed: "failed" };

/** The outcomes of each minute as bars. */
function barsOf(outcomes, first) {
  const minutes = Math.max(...Object.values(outcomes).map((each) => each.length), 60);
  return Array.from({ length: minutes }, (_, index) => {
    const at = new Date(Date.parse(first) + index * 60_000).toISOString().slice(11, 16);
    const codes = Object.entries(outcomes).filter(([, numbers]) => numbers[index]);
    const good = outcomes.OK?.[index] ?? 0;
    const failed = codes.reduce((sum, [code, numbers]) => (code === "OK" ? sum : sum + numbers[index]), 0);
    const title = `${at} UTC: ${codes.map(([code, numbers]) => `${code} ${numbers[index]}`).join(", ")}`;
    return { label: at, title, parts: { good, failed } };
  });
}

const total = (numbers) => numbers.reduce((sum, each) => sum + each, 0);

function Breaker({ breaker }) {
  const rest = breaker.state === "open" ? html` until <${When} at=${breaker.until} />` : "";
  const state = html`<span class=${breaker.state === "closed" ? "good" : "bad"}>${breaker.state}</span>`;
  return html`<li><code>${breaker.source}</code> ${state}${rest}${breaker.reason && `, ${breaker.reason}`}</li>`;
}

function Egress({ egress }) {
  const { throttle } = egress;
  return html`<li>
    <strong>${egress.egress}</strong>${egress.rests_until && html` <span class="bad">rests until <${When} at=${egress.rests_until} /></span>`}
    <${Facts} of=${[
      ["targets in flight", count(egress.targets)],
      ["downloads at once", count(throttle.concurrency)],
      ["seconds between starts", count(throttle.delay)],
    ]} />
    ${egress.breakers.length > 0 &&
    html`<p class="none">Circuit breakers</p>
      <ul>${egress.breakers.map((each) => html`<${Breaker} breaker=${each} />`)}</ul>`}
  </li>`;
}

function Platform({ platform, first }) {
  const codes = Object.entries(platform.outcomes).map(([code, numbers]) => [code, total(numbers)]);
  const sum = total(codes.map(([, number]) => number));
  const good = codes.find(([code]) => code === "OK")?.[1] ?? 0;
  const text = codes.map(([code, number]) => `${code} ${count(number)}`).join(", ");
  const warnings = platform.warnings.map((each) => `${each.source} ${count(each.count)} × ${each.reason || each.code}`).join(", ");
  const isOpen = (breaker) => breaker.state !== "closed";
  const isResting = platform.egresses.some((each) => each.rests_until || each.breakers.some(isOpen));
  return html`<section class="platform" aria-labelledby=${`platform-${platform.platform}`}>
    <h3 id=${`platform-${platform.platform}`}>${platform.platform} ${isResting && html`<span class="bad">circuit breaker open</span>`}</h3>
    <p>${platform.headline}</p>
    <${Facts} of=${[
      ["waiting", count(platform.waiting)],
      ["in flight", count(platform.in_flight)],
      ["last success", platform.last_success ? html`<${When} at=${platform.last_success} />` : "never"],
      ["last hour", sum ? `${count(good)} of ${count(sum)} with a record` : "no targets"],
    ]} />
    ${sum > 0 &&
    html`<${Bars} bars=${barsOf(platform.outcomes, first)} names=${Object.keys(NAMES)} height=${56} label=${`Outcomes by minute: ${text}`} />
      <p class="none">${text}</p>`}
    ${warnings && html`<p>Partial records: ${warnings}</p>`}
    ${platform.unread.length > 0 &&
    html`<p>Parts of responses that could not be read, by number of targets:</p>
      <ul>${platform.unread.map((each) => html`<li>${count(each.count)} × <code>${each.path}</code> of <code>${each.source}</code></li>`)}</ul>`}
    <details class="nested">
      <summary>Egresses <span class="size">${platform.egresses.length}</span></summary>
      <ul class="egresses">${platform.egresses.map((each) => html`<${Egress} egress=${each} />`)}</ul>
    </details>
  </section>`;
}

export function Status({ contract }) {
  const [answer, load] = usePolled("v1/status", READ_SECONDS);
  if (!answer) return html`<h2>Platform status</h2><p role="status">Loading …</p>`;
  if (answer.status !== 200) return html`<h2>Platform status</h2><${Failure} answer=${answer} contract=${contract} onRetry=${load} />`;
  const { at, workers, first_minute: first, platforms } = answer.body;
  return html`<h2>Platform status</h2>
    <p class="summary">The last hour, as of <${When} at=${at} /> UTC, in ${count(workers)} ${workers === 1 ? "process" : "processes"}.</p>
    <${Legend} names=${NAMES} />
    <div class="platforms">${platforms.map((each) => html`<${Platform} key=${each.platform} platform=${each} first=${first} />`)}</div>`;
}

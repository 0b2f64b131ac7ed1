// The page: the navigation, the API key, and what is shown for each address (`#retail-search-v4`, `#usage` ...).

import { isSandbox, loadContract, readKey, storeKey } from "./api.js";
import { html, render, useEffect, useErrorBoundary, useState } from "./htm-preact.js";
import { Jobs } from "./jobs.js";
import { Scraper } from "./scraper.js";
import { Status } from "./status.js";
import { Usage } from "./usage.js";

const PAGES = {
  jobs: { title: "Jobs", path: "/v1/jobs", show: Jobs },
  usage: { title: "Usage", path: "/v1/usage", show: Usage },
  status: { title: "Status", path: "/readyz", show: Status },
};

const readHash = () => location.hash.slice(1); // names of scrapers and pages, which need no escapes, and jobs/17

function Key() {
  const [key, setKey] = useState(readKey());
  const change = (event) => {
    setKey(event.target.value);
    storeKey(event.target.value.trim());
  };
  return html`<label class="key">API key
    <input type="password" value=${key} onInput=${change} autocomplete="off" spellcheck=${false} size="14" /></label>`;
}

/** The scrapers by platform: a list, and on a narrow screen one control. */
function Scrapers({ scrapers, chosen }) {
  const platforms = [...new Set(scrapers.map((each) => each.platform))];
  const of = (platform) => scrapers.filter((each) => each.platform === platform);
  const go = (event) => (location.hash = event.target.value);
  const option = (each) => html`<option value=${each.name}>${each.name}</option>`;
  const link = (each) => html`<a href=${`#${each.name}`} aria-current=${each === chosen ? "page" : undefined}>${each.name}</a>`;
  return html`<nav class="scrapers" aria-label="Scrapers">
      ${platforms.map((platform) => html`<h2>${platform}</h2>
        <ul>${of(platform).map((each) => html`<li>${link(each)}</li>`)}</ul>`)}
    </nav>
    <label class="scrapers-narrow">Scraper <select value=${chosen?.name ?? ""} onChange=${go}>
      ${!chosen && html`<option value="">Choose …</option>`}
      ${platforms.map((platform) => html`<optgroup label=${platform}>${of(platform).map(option)}</optgroup>`)}
    </select></label>`;
}

function App() {
  const [hash, setHash] = useState(readHash());
  const [loaded, setLoaded] = useState(null);
  const [problem, setProblem] = useState("");
  const [fault] = useErrorBoundary();
  useEffect(() => {
    const follow = () => setHash(readHash());
    addEventListener("hashchange", follow);
    loadContract().then(setLoaded, (error) => setProblem(error.message));
    return () => removeEventListener("hashchange", follow);
  }, []);
  if (fault)
    return html`<main class="alone"><p class="notice failure" role="alert">
      <span>The console cannot show this answer: <bdi>${String(fault.message ?? fault)}</bdi>. <a href="">Load it again</a></span></p></main>`;
  if (problem) return html`<main class="alone"><p class="notice failure" role="alert">${problem}</p></main>`;
  if (!loaded) return html`<main class="alone"><p role="status">Loading …</p></main>`;
  const { scrapers, contract } = loaded;
  const [place, opened] = hash.split("/");
  const pages = Object.entries(PAGES).filter(([, page]) => page.path in contract.paths);
  const own = pages.find(([name]) => name === place)?.[1];
  const chosen = own ? null : scrapers.find((each) => [each.name, ...each.aliases].includes(place)) ?? scrapers[0];
  document.title = `${own?.title ?? chosen.name} – Console`;
  const skip = (event) => {
    event.preventDefault(); // the hash names what is shown
    document.getElementById("main").focus();
  };
  const shown = own
    ? html`<${own.show} opened=${opened} contract=${contract} scrapers=${scrapers} />`
    : html`<${Scraper} key=${chosen.name} scraper=${chosen} contract=${contract} start=${isSandbox ? chosen.example : {}} />`;
  return html`<a class="skip" href="#main" onClick=${skip}>To the content</a>
    <header class="top">
      <h1><a href=${`#${scrapers[0].name}`}>Console</a></h1>
      <nav aria-label="Pages of the console">
        <a href=${`#${scrapers[0].name}`} aria-current=${own ? undefined : "true"}>Scrapers</a>
        ${pages.map(([name, page]) => html`<a href=${`#${name}`} aria-current=${place === name ? "page" : undefined}>${page.title}</a>`)}
        <a href="docs">Documentation</a>
      </nav>
      ${isSandbox ? html`<p class="badge">Sandbox: simulated platforms</p>` : html`<${Key} />`}
    </header>
    <div class=${own ? "body wide" : "body"}>
      ${!own && html`<${Scrapers} scrapers=${scrapers} chosen=${chosen} />`}
      <main id="main" tabindex="-1">${shown}</main>
    </div>`;
}

render(html`<${App} />`, document.getElementById("console"));

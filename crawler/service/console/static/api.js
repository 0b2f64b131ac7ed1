// The client of the endpoint: sends requests, and reads the contract in /openapi.json.

import { useEffect, useRef, useState } from "./htm-preact.js";

const root = document.getElementById("console");

/** Whether the service serves the simulated platforms: no images, and one known key. */
export const isSandbox = root.dataset.sandbox === "yes";
const views = new Set(root.dataset.views.split(" "));

const STORED_KEY = "api-key";
const SANDBOX_KEY = "sandbox";
const MAX_DOWNLOAD = 500_000_000; // bytes, which the browser collects before it writes the file
const MAX_LINES = 1_000_000; // characters of lines that are shown

/** The API key, which the browser deletes when the tab is closed. A key of another service at this address is not for the sandbox. */
export const readKey = () => (isSandbox ? SANDBOX_KEY : sessionStorage.getItem(STORED_KEY) ?? "");
export const storeKey = (key) => sessionStorage.setItem(STORED_KEY, key);

/** Reads JSON. Integers that a number cannot hold become BigInt, so that long ids keep their digits (in newer browsers). */
export function parseJson(text) {
  const isLong = (value, source) => typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(source);
  const exact = (_, value, context) => (isLong(value, context?.source ?? "") ? BigInt(context.source) : value);
  return /\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}
BigInt.prototype.toJSON = function () {
  return JSON.rawJSON(String(this));
};

const withKey = (headers) => (readKey() ? { ...headers, "X-API-Key": readKey() } : headers);

async function answerOf(response) {
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text ? parseJson(text) : null, text };
}

/** The answer to a request without a valid response. */
function noAnswer(error) {
  if (error.name === "AbortError") throw error;
  return { status: 0, headers: new Headers(), body: null, text: "", problem: String(error.message ?? error) };
}

/** A key for the header `Idempotency-Key`, so that a job that is sent again after a lost response is not made twice. */
export const newKey = () => [...crypto.getRandomValues(new Uint32Array(4))].map((each) => each.toString(16)).join("-");

/** Sends a request, with params as JSON or other content. Returns `{status, headers, body, text}`; status 0 if there was no valid JSON response. */
export async function send(method, path, { params, content, headers = {}, signal } = {}) {
  const type = params === undefined ? {} : { "Content-Type": "application/json" };
  const body = params === undefined ? content : JSON.stringify(params);
  try {
    return await answerOf(await fetch(path, { method, headers: withKey({ ...headers, ...type }), body, signal, redirect: "error" }));
  } catch (error) {
    return noAnswer(error);
  }
}

/** Saves the response of a route as a file. Returns null, or the answer if there is no file. `onSize` gets the bytes read so far. */
export async function download(path, name, { signal, onSize, most = MAX_DOWNLOAD }) {
  let size = 0;
  let excess = null; // the browser reports its own error if the stream has one
  const counted = new TransformStream({
    transform(piece, output) {
      size += piece.length;
      if (size > most) throw (excess = new Error(`The file has more than ${most.toLocaleString("en-US")} bytes: read it with curl instead.`));
      onSize(size);
      output.enqueue(piece);
    },
  });
  try {
    const response = await fetch(path, { headers: withKey({}), signal, redirect: "error" });
    if (!response.ok) return await answerOf(response);
    const url = URL.createObjectURL(await new Response(response.body.pipeThrough(counted)).blob());
    Object.assign(document.createElement("a"), { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser may still be reading it
    return null;
  } catch (error) {
    return noAnswer(signal?.aborted ? signal.reason : excess ?? error);
  }
}

/** The first objects of a route with JSON Lines, without reading the others. Throws an error if there is no response. */
export async function firstLines(path, most) {
  const response = await fetch(path, { headers: withKey({}), redirect: "error" });
  if (!response.ok) throw new Error(`The service responded with the status ${response.status}.`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let lines = [];
  while (lines.length < most && text.length < MAX_LINES) {
    const { done, value } = await reader.read();
    if (done) break;
    text += value;
    lines = text.split("\n").slice(0, -1);
  }
  reader.cancel();
  return lines.slice(0, most).map(parseJson);
}

/**
 * Reads a route, and again every few seconds while the page is visible and `isLast` is false for its response.
 * Returns its last response, and a function to read it now.
 */
export function usePolled(path, seconds, isLast = () => false) {
  const [answer, setAnswer] = useState(null);
  const pending = useRef(null);
  const load = async () => {
    const sent = send("GET", path);
    pending.current = sent;
    const read = await sent;
    if (pending.current !== sent) return; // a later response is newer
    pending.current = null;
    setAnswer(read);
  };
  const isOver = answer !== null && (answer.status === 401 || isLast(answer)); // 401: until the user has entered another key
  useEffect(() => {
    if (isOver) return undefined;
    load();
    const timer = setInterval(() => document.hidden || pending.current || load(), seconds * 1000);
    return () => clearInterval(timer);
  }, [isOver]);
  return [answer, load];
}

/** The scrapers and the contract. Throws an error with a message for people if the service does not serve them. */
export async function loadContract() {
  const [catalogue, contract] = await Promise.all([send("GET", "v1/scrapers"), send("GET", "openapi.json")]);
  if (catalogue.status !== 200) throw new Error("The service does not respond. Check that it is still running.");
  if (contract.status !== 200) throw new Error("The console needs /openapi.json, which this port does not serve.");
  return { scrapers: catalogue.body.scrapers, contract: contract.body };
}

/** The platform's own view of its data, if its package has one: a function of the data, or undefined. */
export async function loadView(platform) {
  return views.has(platform) ? (await import(`./views/${platform}.js`)).view : undefined;
}

/** The part of the contract that a part refers to, and for "this or null" the schema of "this". */
export function resolve(contract, schema) {
  if (!schema) return {};
  if (schema.$ref) {
    const [kind, name] = schema.$ref.split("/").slice(-2);
    return resolve(contract, contract.components[kind][name]);
  }
  const kinds = schema.anyOf?.filter((each) => each.type !== "null");
  return kinds?.length === 1 ? { ...resolve(contract, kinds[0]), description: schema.description } : schema;
}

/** The schema of a scraper's `data`. */
export function dataSchema(contract, scraper) {
  const answer = resolve(contract, contract.paths[`/v1/scrapers/${scraper}`].post.responses["200"]);
  return resolve(contract, resolve(contract, answer.content["application/json"].schema).properties.data);
}

/** The dotted paths of the lists of objects in a schema that are not inside other lists. */
export function listPaths(contract, schema, path = []) {
  return Object.entries(schema.properties ?? {}).flatMap(([key, each]) => {
    const [own, inner] = [resolve(contract, each), [...path, key]];
    if (own.properties) return listPaths(contract, own, inner);
    return resolve(contract, own.items).properties ? [inner.join(".")] : [];
  });
}

/** The description of an error in the contract. "" for an unknown code. */
export function describeError(contract, code) {
  const answers = Object.values(contract.components.responses);
  return answers.map((each) => each.content?.["application/json"]?.examples?.[code]?.summary).find(Boolean) ?? "";
}

/**
 * The params of the next page, or null if there is none: with the cursor in the data, or the next number of a page.
 * A scraper has pages if its params have `cursor` or `page`, and its data has a key such as `has_more`.
 */
export function nextParams(scraper, params, data) {
  const plain = (name) => name.replaceAll("_", "").toLowerCase();
  const found = {};
  const isObject = (each) => each && typeof each === "object" && !Array.isArray(each);
  for (const level of [data, ...Object.values(data)].filter(isObject))
    for (const [name, value] of Object.entries(level)) found[plain(name)] ??= value;
  if (found.hasmore !== true) return null;
  const { cursor, page } = scraper.params_schema.properties;
  const following = found.nextcursor ?? found.cursor;
  if (cursor) return following ? { ...params, cursor: following } : null;
  return page ? { ...params, page: (params.page ?? page.default ?? 1) + 1 } : null;
}

/**
 * What a record lacks, from the header `X-Partial` (RFC 9651): `[{source, reason, code}]`. An unread part of a payload
 * also has `path`, `cause`, `rows`, `of` and, if its rows are not in the record, `loses_rows`. An incomplete listing has
 * `collected`, `why` and, if the platform states a number, `expected`.
 */
export function parsePartial(header) {
  const text = (quoted) => (quoted.startsWith('"') ? quoted.slice(1, -1).replace(/\\(.)/g, "$1") : quoted);
  const item = /("(?:[^"\\]|\\.)*"|[^\s,;"]+)((?:\s*;\s*[\w-]+(?:=(?:"(?:[^"\\]|\\.)*"|[^\s,;"]+))?)*)/g;
  return [...(header ?? "").matchAll(item)].map(([, source, rest]) => {
    const named = [...rest.matchAll(/;\s*([\w-]+)(?:=("(?:[^"\\]|\\.)*"|[^\s,;"]+))?/g)];
    return { source: text(source), ...Object.fromEntries(named.map(([, name, value]) => [name, value === undefined || text(value)])) };
  });
}

/** The same call in other languages: `{curl, Python, JavaScript}`. They read the key from the environment. */
export function samples(scraper, params) {
  const url = new URL(`v1/scrapers/${scraper}`, document.baseURI).href;
  const json = JSON.stringify(params);
  const quoted = json.replaceAll("'", "'\\''");
  const keys = isSandbox
    ? { python: `"${SANDBOX_KEY}"`, script: `"${SANDBOX_KEY}"` }
    : { python: 'os.environ["API_KEY"]', script: "process.env.API_KEY" };
  const literal = (value) => (typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value));
  const python = Object.entries(params).map(([name, value]) => `"${name}": ${literal(value)}`);
  const header = isSandbox ? `'X-API-Key: ${SANDBOX_KEY}'` : '"X-API-Key: $API_KEY"';
  return {
    curl: `curl -s '${url}' \\\n  -H ${header} \\\n  -H 'Content-Type: application/json' \\\n  -d '${quoted}'\n`,
    Python: `import json
${isSandbox ? "" : "import os\n"}from urllib.error import HTTPError
from urllib.request import Request, urlopen

headers = {"X-API-Key": ${keys.python}, "Content-Type": "application/json"}
params = {${python.join(", ")}}
request = Request("${url}", json.dumps(params).encode(), headers)
try:
    answer = json.load(urlopen(request, timeout=130))
except HTTPError as error:  # the error has the same envelope
    answer = json.load(error)
print(json.dumps(answer, indent=2))
`,
    JavaScript: `const response = await fetch("${url}", {
  method: "POST",
  headers: { "X-API-Key": ${keys.script}, "Content-Type": "application/json" },
  body: JSON.stringify(${json}),
});
const answer = await response.json(); // also for errors
console.log(JSON.stringify(answer, null, 2));
`,
  };
}

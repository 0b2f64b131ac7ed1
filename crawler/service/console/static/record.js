// Shows any record, from its data and its schema: as facts, tables, and objects that can be opened.

import { resolve } from "./api.js";
import { html, useMemo, useState } from "./htm-preact.js";
import { count, duration, Link, Picture, price, safeUrl, Text, useSteps, When } from "./parts.js";

const ROWS = 25;
const MORE_ROWS = 500;
const SAMPLE = 500; // rows that decide about the columns
const COLUMNS = 8;
const LONG_TEXT = 70;
const IMAGE = /image|photo|picture|thumbnail|avatar|cover|logo|banner|display_ur/i;

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isEmpty = (value) =>
  value === null || value === "" || (typeof value === "object" && Object.values(value).every((each) => each === null || each === ""));

/** A key as words: `followerCount` and `follower_count` are "follower count". */
export const label = (key) => key.replace(/^_+/, "").replaceAll("_", " ").replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

/** How to show a value: flag, time, length, price, number, link, image, text, list, table or object. */
export function kindOf(key, value, schema = {}) {
  const about = schema.description ?? "";
  if (Array.isArray(value)) return value.some((each) => each !== null && typeof each === "object") ? "table" : "list";
  if (isObject(value)) return "object";
  if (typeof value === "boolean") return "flag";
  if (typeof value === "number") {
    if (/\bUnix\b|_timestamp$/.test(`${about} ${key}`) && value > 1e8) return "time";
    if (/^length\b.* in seconds/i.test(about)) return "length";
    if (/price/.test(key)) return "price";
    return /\byear\b/.test(about) ? "text" : "number";
  }
  if (safeUrl(value)) return IMAGE.test(`${key} ${about}`) ? "image" : "link";
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d|^\w{3} \w{3} \d\d [\d:]{8} \+0000 \d{4}$/.test(value)) return "time";
  return "text";
}

/** An object with one key adds no information: returns the value of this key, to be shown under the outer key. */
function unwrap(value, schema, path, contract) {
  const keys = isObject(value) ? Object.keys(value) : [];
  if (keys.length !== 1) return { value, schema, path };
  const inner = resolve(contract, schema.properties?.[keys[0]]);
  return unwrap(value[keys[0]], inner, [...path, keys[0]], contract);
}

/** The fields of an object, `{key, path, value, schema, kind}` each. */
function fieldsOf(value, schema, path, contract) {
  return Object.entries(value).map(([key, each]) => {
    const own = resolve(contract, schema.properties?.[key] ?? {});
    const inner = unwrap(each, own, [...path, key], contract);
    const last = inner.path.at(-1);
    return { key, ...inner, kind: isEmpty(inner.value) ? "empty" : kindOf(last, inner.value, inner.schema) };
  });
}

const name = (path) => path.filter((each) => typeof each === "string").join(".");

/** The names of a field without a value: for an object those of its keys, all of which have no value. */
const namesOf = (field) =>
  isObject(field.value) && Object.keys(field.value).length
    ? Object.keys(field.value).map((key) => ({ text: `${label(field.key)} ${label(key)}`, id: name([...field.path, key]) }))
    : [{ text: label(field.key), id: name(field.path) }];

/** One value that is not an object or a table. */
export function Value({ kind, value, currency }) {
  switch (kind) {
    case "empty":
      return html`<span class="none">–</span>`;
    case "flag":
      return value ? "yes" : "no";
    case "number":
      return count(value, 15);
    case "price":
      return price(value, currency);
    case "length":
      return duration(value);
    case "time":
      return html`<${When} at=${value} />`;
    case "link":
      return html`<${Link} to=${value} />`;
    case "image":
      return html`<${Picture} of=${value} /><${Link} to=${value} />`;
    case "list":
      return html`<ul class="tags">${value.map((each) => html`<li><${Value} kind=${kindOf("", each)} value=${each} /></li>`)}</ul>`;
    default:
      return html`<${Text} value=${value} />`;
  }
}

/** All fields of an object: first the simple ones, then tables and objects, and the names of those without a value. */
export function Fields({ value, schema, contract, path = [], level = 0 }) {
  const fields = fieldsOf(value, schema, path, contract);
  const of = (...kinds) => fields.filter((each) => kinds.includes(each.kind));
  const empty = of("empty");
  const nested = of("object", "table");
  const simple = fields.filter((each) => !empty.includes(each) && !nested.includes(each));
  const isLong = ({ kind, value: each }) => (kind === "text" && String(each).length > LONG_TEXT) || kind === "list";
  return html`<div class="fields">
    ${simple.length > 0 &&
    html`<dl class="facts">
      ${simple.map(
        (field) => html`<div class=${`${field.kind} ${isLong(field) ? "long" : ""}`} data-field=${name(field.path)}>
          <dt title=${name(field.path)}>${label(field.key)}</dt>
          <dd><${Value} ...${field} currency=${value.currency} /></dd>
        </div>`,
      )}
    </dl>`}
    ${nested.map((field) => html`<${Nested} key=${field.key} field=${field} contract=${contract} level=${level} />`)}
    ${empty.length > 0 &&
    html`<p class="none">Without a value: ${empty.flatMap(namesOf).map(
      ({ text, id }, index) => html`${index > 0 && ", "}<span data-field=${id} title=${id}>${text}</span>`,
    )}</p>`}
  </div>`;
}

/** An object or a table inside an object, to open. The first ones are open. */
function Nested({ field, contract, level }) {
  const [isOpen, setOpen] = useState(level < 1);
  const size = Array.isArray(field.value) ? html` <span class="size">${count(field.value.length)}</span>` : null;
  const inner = field.kind === "table" ? Table : Fields;
  const toggle = (event) => setOpen(event.currentTarget.open);
  return html`<details class="nested" open=${isOpen} onToggle=${toggle} data-field=${name(field.path)}>
    <summary title=${name(field.path)}>${label(field.key)}${size}</summary>
    ${isOpen && html`<${inner} ...${field} name=${label(field.key)} contract=${contract} level=${level + 1} />`}
  </details>`;
}

const ORDER = { time: 1, price: 2, number: 3, length: 4, text: 5, flag: 6, list: 7 };
const isTitle = (key) => /^(title|name|caption|desc|text|label|display_name|job_title|full_name)$/.test(key);

/** The most informative columns: a title first, then times and numbers. An opened row has all fields. */
function columnsOf(rows) {
  const columns = new Map();
  for (const row of rows)
    for (const field of row.flat.filter((each) => each.kind in ORDER)) {
      const known = columns.get(field.id) ?? { ...field, values: new Set(), rank: isTitle(field.key) ? 0 : ORDER[field.kind] };
      columns.set(field.id, { ...known, filled: (known.filled ?? 0) + 1, values: known.values.add(JSON.stringify(field.value)) });
    }
  const isTelling = (each) => each.filled * 2 >= rows.length && (each.values.size > 1 || rows.length === 1);
  const telling = [...columns.values()].filter((each) => each.rank === 0 || isTelling(each));
  const isId = (each) => /(^|_)(id|pk|code|mid|uid)$/.test(each.key);
  return telling.filter((each) => !isId(each)).sort((a, b) => a.rank - b.rank).slice(0, COLUMNS);
}

/** The fields of a row, with those of small objects in it, such as a price. */
function flatten(value, schema, contract) {
  return fieldsOf(value, schema, [], contract).flatMap((field) => {
    const inner = field.kind === "object" ? fieldsOf(field.value, field.schema, [...field.path], contract) : [];
    const small = inner.length <= 5 && inner.every((each) => !["object", "table"].includes(each.kind));
    const own = { ...field, id: name(field.path), title: label(field.key) };
    if (field.kind !== "object" || !small) return [own];
    const title = (each) => (each.key.includes(field.key) ? label(each.key) : `${label(field.key)} ${label(each.key)}`);
    return inner.map((each) => ({ ...each, id: name(each.path), title: title(each), currency: field.value.currency }));
  });
}

/** A row as an object: a row that is a single value, such as text, under its own key. */
const asObject = ({ value, schema, path }) =>
  isObject(value) ? { value, schema, path } : { value: { [path.at(-1)]: value }, schema: {}, path: path.slice(0, -1) };

/** A list of objects. Each row can be opened to see all its fields. */
export function Table({ value, schema, contract, path = [], name: title = "Rows", level = 1 }) {
  const [shown, more] = useSteps(value, ROWS, MORE_ROWS);
  const [open, setOpen] = useState(new Set());
  const rowOf = (each) => {
    const row = unwrap(each, resolve(contract, schema.items), path, contract);
    if (isObject(row.value)) return { ...row, flat: flatten(row.value, row.schema, contract) };
    const kind = isEmpty(row.value) ? "empty" : kindOf("", row.value);
    return { ...row, flat: [{ key: "value", id: "value", title: "value", path, value: row.value, kind }] };
  };
  const columns = useMemo(() => columnsOf(value.slice(0, SAMPLE).map(rowOf)), [value]);
  const rows = useMemo(() => shown.map(rowOf), [value, shown.length]);
  const toggle = (index) => {
    const next = new Set(open);
    if (!next.delete(index)) next.add(index);
    setOpen(next);
  };
  return html`<div class="scroll" role="region" tabindex="0" aria-label=${title}>
      <table>
        <thead><tr><th scope="col"><span class="hidden">Open</span></th>
          ${columns.map((column) => html`<th scope="col" class=${column.kind} title=${column.id}>${column.title}</th>`)}</tr></thead>
        <tbody>
          ${rows.map((row, index) => html`
            <tr key=${index}>
              <td><button type="button" class="open" aria-expanded=${String(open.has(index))} onClick=${() => toggle(index)}>
                <span class="hidden">All fields of row ${index + 1}</span></button></td>
              ${columns.map((column) => {
                const field = row.flat.find((each) => each.id === column.id) ?? { kind: "empty" };
                const kind = column.rank === 0 ? "title" : column.kind;
                return html`<td class=${kind}><div class="cell"><${Value} ...${field} /></div></td>`;
              })}
            </tr>
            ${open.has(index) && html`<tr key=${`${index} open`} class="opened"><td colspan=${columns.length + 1}>
              <${Fields} ...${asObject(row)} contract=${contract} level=${level} />
            </td></tr>`}`)}
        </tbody>
      </table>
    </div>
    ${more}`;
}

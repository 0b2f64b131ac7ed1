// The form of a scraper's params, made from their schema. The service validates the values.

import { html } from "./htm-preact.js";

/** The type of a param's control: the values of a list, a switch, a number or text. */
function controlOf(schema) {
  if (schema.enum) return "choice";
  const type = schema.type ?? schema.anyOf?.[0].type;
  return { boolean: "switch", integer: "number", number: "number" }[type] ?? "text";
}

/** The params as they are sent: without empty ones and defaults, and with numbers as numbers. */
export function paramsOf(schema, values) {
  const params = {};
  for (const [name, own] of Object.entries(schema.properties)) {
    const value = values[name];
    if (value === undefined || value === "" || value === own.default) continue;
    const isNumber = controlOf(own) === "number" && /^-?\d+(\.\d+)?$/.test(value);
    const sent = isNumber ? Number(value) : value;
    if (sent !== own.default) params[name] = sent;
  }
  return params;
}

/** The params of which a target needs one: those of `if ... then not ... else` in the schema. */
const alternatives = (schema) => [...(schema.if?.required ?? []), ...(schema.else?.required ?? [])];

/** The text of a description, in which code is the only markup. */
export const described = (text = "") =>
  text.split(/`(.+?)`/).map((part, index) => (index % 2 ? html`<code>${part}</code>` : part));

function Param({ name, schema, value, example, isRequired, problem, onChange }) {
  const id = `param-${name}`;
  const control = controlOf(schema);
  const shared = {
    id,
    name,
    "aria-describedby": `${id}-about`,
    "aria-invalid": problem ? "true" : undefined,
    required: isRequired,
  };
  const write = (event) => onChange(event.target.value);
  const text = { ...shared, type: "text", value: value ?? "", placeholder: example ?? schema.default, autocomplete: "off", onInput: write };
  const controls = {
    choice: () => html`<select ...${shared} value=${value ?? schema.default} onChange=${write}>
      ${schema.enum.map((each) => html`<option value=${each}>${each}</option>`)}
    </select>`,
    switch: () => html`<input type="checkbox" ...${shared} checked=${value ?? schema.default}
      onChange=${(event) => onChange(event.target.checked)} />`,
    number: () => html`<input inputmode="decimal" ...${text} />`,
    text: () => html`<input spellcheck=${false} ...${text} />`,
  };
  return html`<div class=${schema.maxLength > 1000 && !/cursor/.test(name) ? "param wide" : "param"}>
    <label for=${id}>${name}${isRequired && html` <span class="required">required</span>`}</label>
    ${controls[control]()}
    <p id=${`${id}-about`} class="about">
      ${problem && html`<strong class="problem">${problem}</strong> `}${described(schema.description)}</p>
  </div>`;
}

/** The form. `problems`: param -> the message of its error. */
export function Form({ scraper, values, problems, isPending, onChange, onSubmit, children }) {
  const schema = scraper.params_schema;
  const required = [...(schema.required ?? []), ...alternatives(schema)];
  const names = Object.keys(schema.properties).sort((a, b) => required.includes(b) - required.includes(a));
  const submit = (event) => {
    event.preventDefault();
    if (!isPending) onSubmit();
  };
  return html`<form class="params" onSubmit=${submit} novalidate>
    ${alternatives(schema).length > 0 &&
    html`<p class="about">${described(`One of ${alternatives(schema).map((name) => `\`${name}\``).join(" or ")} is required.`)}</p>`}
    <div class="grid">
      ${names.map((name) => html`<${Param} key=${name} name=${name} schema=${schema.properties[name]} value=${values[name]}
        example=${scraper.example[name]} isRequired=${schema.required?.includes(name)} problem=${problems[name]}
        onChange=${(value) => onChange({ ...values, [name]: value })} />`)}
    </div>
    ${children}
  </form>`;
}

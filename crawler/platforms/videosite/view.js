// A channel and its items.

import { Content, html } from "../parts.js";

export const view = (data) => html`<${Content} data=${data} />`;

// Bar charts in SVG. The texts and tables below them have the same numbers.

import { html } from "./htm-preact.js";
import { count } from "./parts.js";

/** A round number at or above the highest value, for the axis. */
function ceiling(highest) {
  const step = 10 ** Math.floor(Math.log10(Math.max(highest, 1)));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((each) => each * step).find((each) => each >= highest);
}

/** Bars, each a stack. `bars`: `{label, title, parts: {name: number}}`; `names`: the parts, from the bottom. */
export function Bars({ bars, names, label, height = 160 }) {
  const sum = (bar) => names.reduce((total, name) => total + (bar.parts[name] ?? 0), 0);
  const top = ceiling(Math.max(...bars.map(sum), 1));
  const width = 100 / bars.length;
  return html`<figure class="plot">
    <svg role="img" aria-label=${label} height=${height} width="100%" viewBox=${`0 0 100 ${height}`} preserveAspectRatio="none">
      <line x1="0" x2="100" y1="0.5" y2="0.5" class="axis" /><line x1="0" x2="100" y1=${height / 2} y2=${height / 2} class="axis" />
      <line x1="0" x2="100" y1=${height - 0.5} y2=${height - 0.5} class="axis" />
      ${bars.map((bar, index) => {
        let y = height;
        return names.map((name) => {
          const size = ((bar.parts[name] ?? 0) / top) * (height - 1);
          y -= size;
          const place = { x: (index + 0.12) * width, width: width * 0.76, y, height: size };
          return size > 0 && html`<rect class=${name} ...${place}><title>${bar.title}</title></rect>`;
        });
      })}
    </svg>
    <span class="high">${count(top)}</span>
    <figcaption><span>${bars[0].label}</span><span>${bars.at(-1).label}</span></figcaption>
  </figure>`;
}

/** The names of the parts with their colours. */
export const Legend = ({ names }) => html`<p class="legend">
  ${Object.entries(names).map(([name, text]) => html`<span>
    <svg width="10" height="10" aria-hidden="true"><rect class=${name} width="10" height="10" /></svg> ${text}
  </span>`)}
</p>`;

// View of a listing, with one card per product.

import { count, Facts, Heading, html, Link, Picture, price, useSteps } from "../parts.js";

function Price({ of }) {
  if (of.is_price_range && Number.isFinite(of.min_price)) {
    const highest = Number.isFinite(of.max_price) ? html` – ${price(of.max_price, of.currency)}` : "";
    return html`<p class="price"><small>from</small> ${price(of.min_price, of.currency)}${highest}</p>`;
  }
  if (!Number.isFinite(of.current_price)) return html`<p class="price"><small>without a price</small></p>`;
  return html`<p class="price">${price(of.current_price, of.currency)}</p>`;
}

function Product({ of }) {
  const rating = Number.isFinite(of.rating.average) ? `${of.rating.average.toFixed(1)} (${count(of.rating.review_count)})` : "";
  return html`<li>
    <${Picture} of=${of.image} />
    <p class="name"><${Link} to=${of.url}>${of.name}<//></p>
    ${of.is_sponsored && html`<span class="tag">sponsored</span>`}
    <${Price} of=${of.price} />
    <${Facts} of=${[["rated", rating], ["by", of.seller.name], ["", of.availability.display]]} />
  </li>`;
}

function Cards({ of }) {
  const [shown, more] = useSteps(of, 200, 500);
  return html`<ul class="cards">${shown.map((each) => html`<${Product} of=${each} />`)}</ul>${more}`;
}

export function view(data) {
  const facts = [
    ["products reported", count(data.total_results)],
    ["page", `${count(data.page)} of ${count(data.max_page)}`],
    ["on this page", count(data.returned)],
    ["sorted by", data.sort.replaceAll("_", " ")],
  ];
  return html`<${Heading} title=${data.heading || data.title} link=${data.url} facts=${facts} />
    <${Cards} of=${data.products} />`;
}

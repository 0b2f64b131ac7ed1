// A member's positions and schools as timelines; or a member's content.

import { Content, Heading, html, Link, Picture, Text } from "../parts.js";

function Timeline({ title, of }) {
  if (!of.length) return null;
  return html`<h4>${title} <span class="size">${of.length}</span></h4>
    <ol class="timeline">
      ${of.map(
        (each) => html`<li>
          <div class="when">${each.when || "–"}</div>
          <div>
            <${Picture} of=${each.image} />
            <strong><bdi>${each.title || "Hidden by the platform"}</bdi></strong>
            ${each.place && html`<p>${each.link ? html`<${Link} to=${each.link}>${each.place}<//>` : html`<bdi>${each.place}</bdi>`}</p>`}
            ${each.sub && html`<p class="sub"><bdi>${each.sub}</bdi></p>`}
            ${each.text && html`<p><${Text} value=${each.text} /></p>`}
          </div>
        </li>`,
      )}
    </ol>`;
}

const joined = (...parts) => parts.filter(Boolean).join(" · ");

export function view(data) {
  if (data.posts) return html`<${Content} data=${data} />`;
  const facts = [["", data.followers], ["", data.connections], ["skills", data.skills.join(", ")]];
  const positions = data.experience.map((each) => ({
    when: each.date_range,
    title: each.job_title,
    place: each.company_name,
    link: each.company_url,
    sub: joined(each.duration, each.location, each.masked && "partly hidden by the platform"),
    text: each.description,
    image: each.company_image,
  }));
  const schools = data.education.map((each) => ({
    when: each.date_range,
    title: joined(each.degree, each.field_of_study) || each.school_name,
    place: each.school_name,
    link: each.school_url,
    text: each.description,
    image: each.school_image,
  }));
  return html`<${Heading} title=${data.fullName} link=${data.profile_url} image=${data.profile_photo}
      sub=${joined(data.headline, data.location)} text=${data.about} facts=${facts} />
    <${Timeline} title="Positions" of=${positions} />
    <${Timeline} title="Education" of=${schools} />`;
}

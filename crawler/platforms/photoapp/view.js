// A post, its comments, and the newest posts of its owner.

import { count, Heading, html, Picture, Posts, When } from "../parts.js";

const KINDS = { 1: "photo", 2: "video", 8: "carousel" };

export function view({ data: { xdt_shortcode_media: post } }) {
  const { owner } = post;
  const comments = post.edge_media_to_comment.edges.map(({ node }) => ({
    text: node.text,
    at: node.created_at,
    by: node.owner.username && `@${node.owner.username}`,
    facts: [["likes", count(node.edge_liked_by?.count)]],
  }));
  const newest = (owner.polaris_ordered_timeline_connection?.edges ?? []).map(({ node }) => ({
    text: node.caption?.text,
    kind: KINDS[node.media_type],
    image: node.display_uri,
    link: node.seo_canonical_url,
  }));
  const facts = [
    ["likes", count(post.edge_media_preview_like?.count)],
    ["comments", count(post.edge_media_to_comment.count)],
    ["people tagged", count(post.edge_media_to_tagged_user.edges.length)],
    ["posted", html`<${When} at=${post.taken_at_timestamp} />`],
  ];
  return html`<${Heading} title=${owner.full_name || owner.username} sub=${`@${owner.username}`} image=${owner.profile_pic_url}
      text=${post.edge_media_to_caption.edges.map(({ node }) => node.text).join("\n")} facts=${facts} />
    <${Picture} of=${post.display_url} alt=${post.accessibility_caption} />
    <${Posts} title="Comments on the page" of=${comments} />
    <${Posts} title="The owner's newest posts" of=${newest} />`;
}

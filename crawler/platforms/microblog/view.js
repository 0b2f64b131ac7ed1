// View of a profile and its posts.

import { count, Heading, html, Posts, When } from "../parts.js";

export function view({ data: { additional, main } }) {
  const profile = additional.profile_demographics;
  const posts = main.map((post) => ({
    text: post.caption,
    link: post.post_url,
    at: post.upload_timestamp,
    kind: (post.is_reply && "reply") || (post.is_repost && "repost") || (post.is_quote && "quote"),
    by: post.creator_handle && post.creator_handle !== profile.screen_name && `@${post.creator_handle}`,
    inner: (post.quoted_post ?? post.reposted_post)?.caption,
    image: post.thumbnail_url,
    facts: [
      ["likes", count(post.like_count)],
      ["views", count(post.view_count)],
      ["reposts", count(post.share_count)],
      ["replies", count(post.comment_count)],
    ],
  }));
  const facts = [
    ["followers", count(profile.followers_count)],
    ["posts", count(profile.statuses_count)],
    ["follows", count(profile.friends_count)],
    ["since", html`<${When} at=${profile.created_at} />`],
  ];
  return html`<${Heading} title=${profile.name} sub=${`@${profile.screen_name}`} text=${profile.description}
      image=${profile.profile_image_url_https} facts=${facts} />
    <${Posts} title="Posts" of=${posts} />`;
}

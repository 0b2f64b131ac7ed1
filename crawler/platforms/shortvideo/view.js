// View of the photo posts that a search has found.

import { count, Heading, html, Posts } from "../parts.js";

export function view(data) {
  const posts = data.search_item_list.map((post) => ({
    text: post.desc,
    link: post.url,
    at: post.create_time,
    kind: post.image_post_info.images.length === 1 ? "1 photo" : `${post.image_post_info.images.length} photos`,
    by: `${post.author.nickname} @${post.author.unique_id}`,
    image: post.image_post_info.images[0]?.display_image.url_list[0],
    facts: [
      ["likes", count(post.statistics.digg_count)],
      ["views", count(post.statistics.play_count)],
      ["comments", count(post.statistics.comment_count)],
      ["sound", post.music.title],
    ],
  }));
  return html`<${Heading} title=${data.keywords} facts=${[["posts", count(posts.length)], ["more", data.has_more ? "yes" : "no"]]} />
    <${Posts} title="Photo posts" of=${posts} />`;
}

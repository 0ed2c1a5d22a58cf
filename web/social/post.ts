// SPDX-License-Identifier: Apache-2.0
// post.ts - a post as an element. All that a user wrote is text.
import { element } from "../common/dom";
import { onPress } from "../shell/act";
import type { MediaItem, Post } from "./api";
import { piecesOf } from "./text";

export interface PostActions {
  me: string;
  favorite(post: Post): boolean; // the user likes it
  toggle(post: Post): Promise<unknown>;
  remove(post: Post): Promise<unknown>;
}

export const personLink = (name: string, mark = "") => element("a", { href: `#/user/${name}` }, mark + name);

function textOf(post: Post): HTMLElement {
  const parts = piecesOf(post.text ?? "", post.urls ?? [], post.mentions ?? []).map((piece) => {
    if (piece.kind === "text") return piece.text;
    if (piece.kind === "person") return personLink(piece.name, "@");
    return element("a", { href: piece.url, target: "_blank", rel: "noopener noreferrer nofollow" }, piece.url);
  });
  return element("p", {}, ...parts);
}

function pictureOf(item: MediaItem, author: string): HTMLElement {
  const picture = element("img", { src: `/v1/media/${item.id}`, alt: `Picture by ${author}`, loading: "lazy" });
  picture.addEventListener("error", () => picture.replaceWith(element("p", { class: "hint" }, `A picture (${item.type}) that is not kept here`)));
  return picture;
}

function videoOf(item: MediaItem, author: string): HTMLElement {
  return element("video", { src: `/v1/media/${item.id}`, "aria-label": `Video by ${author}`, controls: "", preload: "metadata" });
}

function buttonsOf(post: Post, actions: PostActions): HTMLElement {
  const count = Number(post.favorites ?? 0), liked = actions.favorite(post);
  const favorite = element("button", { type: "button", "aria-pressed": String(liked), "data-key": `favorite-${post.id}` }, `Favourite (${count})`);
  const row = element("div", { class: "row" }, onPress(favorite, () => actions.toggle(post)));
  if (post.author.name !== actions.me) return row;
  const remove = element("button", { type: "button", "data-key": `delete-${post.id}` }, "Delete");
  let sure = false;
  row.append(onPress(remove, async () => {
    if (sure) await actions.remove(post);
    sure = true;
    remove.textContent = "Really delete?";
  }));
  return row;
}

function bodyOf(post: Post): HTMLElement[] {
  const created = new Date(Number(post.createdMs));
  const time = element("time", { datetime: created.toISOString() }, created.toLocaleString());
  const rest = [textOf(post)];
  for (const item of post.media ?? []) {
    if (item.type.startsWith("image/")) rest.push(pictureOf(item, post.author.name));
    if (item.type.startsWith("video/")) rest.push(videoOf(item, post.author.name));
  }
  if (post.replyTo) rest.unshift(element("p", { class: "hint" }, "An answer"));
  if (post.original) rest.push(element("blockquote", {}, element("article", {}, ...bodyOf(post.original))));
  return [element("h3", {}, personLink(post.author.name), " ", time), ...rest];
}

export function postElement(post: Post, actions: PostActions): HTMLElement {
  return element("li", {}, element("article", { "data-post": post.id }, ...bodyOf(post), buttonsOf(post, actions)));
}

// SPDX-License-Identifier: Apache-2.0
// main.ts - the social network's page: #/home, #/user/NAME, #/search/TEXT.
import { byId, element, replace } from "../common/dom";
import { onPress, say } from "../shell/act";
import { call, part, read, Refused, session } from "../shell/client";
import { form, nameField, passwordField, progressBar, valueOf, type Control } from "../shell/form";
import { pagedList } from "../shell/list";
import { endSession, go, refreshButton, start, type View } from "../shell/shell";
import { forget, upload } from "../shell/upload";
import type { Changed, People, Post, Posts, Statistics } from "./api";
import { personLink, postElement, type PostActions } from "./post";

const MAX_TEXT_BYTES = 4096, MAX_IMAGE_BYTES = 4 * 2 ** 20, MAX_VIDEO_BYTES = 16 * 2 ** 20;
const MAX_LIST_PAGES = 10; // of 100 users whom the user follows

const favorites = new Set<string>(); // posts that the user likes, as far as known
const following = new Set<string>(); // names
const me = () => session()?.name ?? "";

async function learnMine(): Promise<void> {
  for (const post of (await call<Posts>("GET", `users/${part(me())}/favorites?limit=100`)).posts ?? []) favorites.add(post.id);
  let from = "0";
  for (let page = 0; page < MAX_LIST_PAGES; ++page) {
    const found = await call<People>("GET", `users/${part(me())}/following?limit=100&before=${from}`);
    for (const person of found.people ?? []) following.add(person.name);
    if (!found.next) return;
    from = found.next;
  }
}

// ----- posts

const actions: PostActions = {
  get me() {
    return me();
  },
  favorite: (post) => favorites.has(post.id),
  async toggle(post) {
    const on = !favorites.has(post.id);
    const { changed } = await call<Changed>(on ? "PUT" : "DELETE", `favorites/${post.id}`);
    if (on) favorites.add(post.id);
    else favorites.delete(post.id);
    redraw({ ...post, favorites: String(Number(post.favorites ?? 0) + (changed ? (on ? 1 : -1) : 0)) });
  },
  async remove(post) {
    await call<Changed>("DELETE", `posts/${post.id}`);
    shown(post.id)?.remove();
    say("note", "Deleted.");
    byId("h-view").focus();
  },
};

const shown = (id: string) => document.querySelector(`#posts > li > [data-post="${id}"]`)?.parentElement;

function redraw(post: Post): void {
  const old = shown(post.id);
  if (!old) return;
  const key = old.contains(document.activeElement) ? document.activeElement?.getAttribute("data-key") : null;
  const made = postElement(post, actions);
  old.replaceWith(made);
  if (key) made.querySelector<HTMLElement>(`[data-key="${key}"]`)?.focus();
}

// Posts at `path`, from where the parameter `from` says.
const postList = (path: string, from: string, visit: AbortSignal) => pagedList<Post>({
  id: "posts", label: "Posts", empty: "There are no posts yet.",
  async read(next) {
    const page = await read<Posts>(`${path}limit=20&${from}=${next}`, visit);
    return { items: page.posts, next: page.next };
  },
  show: (post) => postElement(post, actions),
});

// ----- views

function home(_: string, visit: AbortSignal): View {
  const posts = postList("home?", "before", visit);
  return { title: "Home", actions: [refreshButton(posts.load)], content: [posts.element], load: posts.load };
}

function followButton(name: string, changed: () => Promise<void>): HTMLElement {
  const button = element("button", { type: "button", "data-key": "follow" });
  const draw = () => {
    button.textContent = following.has(name) ? "Unfollow" : "Follow";
  };
  draw();
  return onPress(button, async () => {
    const on = !following.has(name);
    await call<Changed>(on ? "PUT" : "DELETE", `following/${part(name)}`);
    if (on) following.add(name);
    else following.delete(name);
    draw();
    await changed();
  });
}

function user(name: string, visit: AbortSignal): View {
  const about = element("p", { class: "hint", id: "about" }), posts = postList(`users/${part(name)}/posts?`, "before", visit);
  const describe = async () => {
    const of = await read<Statistics>(`users/${part(name)}/statistics`, visit);
    about.textContent = `Posts: ${of.posts ?? 0}, followers: ${of.followers ?? 0}, following: ${of.following ?? 0}, likes: ${of.likesReceived ?? 0}`;
  };
  return {
    title: `Posts of ${name}`,
    actions: name === me() ? [] : [followButton(name, describe)],
    content: [about, posts.element],
    load: async () => (await describe(), await posts.load()),
  };
}

function search(text: string, visit: AbortSignal): View {
  const people = element("ul", { class: "people", "aria-label": "Users that were found", hidden: "" });
  const posts = postList(`search/posts?newest=true&text=${part(text)}&`, "from", visit);
  // Names begin with what was asked for; what no name can begin with finds none.
  const findPeople = async () => {
    const prefix = text.trim().toLowerCase();
    if (!/^[a-z0-9_]{1,32}$/.test(prefix)) return;
    const found = (await read<People>(`search/users?limit=10&prefix=${prefix}`, visit)).people ?? [];
    replace(people, ...found.map((person) => element("li", {}, personLink(person.name))));
    people.hidden = found.length === 0;
  };
  return { title: `Posts with “${text}”`, content: [people, posts.element], load: async () => (await findPeople(), await posts.load()) };
}

// ----- forms

const progress = progressBar("Upload");
const fileOf = (control: Control) => (control as HTMLInputElement).files?.[0];

const compose = form({
  id: "compose-form",
  fields: [{
    id: "text", label: "Text", hint: "@name mentions a user", tag: "textarea", attributes: { rows: "3", maxlength: "4096" },
    check: ({ value }) => (new TextEncoder().encode(value).length > MAX_TEXT_BYTES ? `The text is over ${MAX_TEXT_BYTES} bytes.` : null),
  }, {
    id: "picture", label: "Picture or video", hint: "png, jpeg, gif or webp, at most 4 MiB; mp4 or webm, at most 16 MiB",
    attributes: { type: "file", accept: "image/png,image/jpeg,image/gif,image/webp,video/mp4,video/webm" },
    check(control) {
      const file = fileOf(control), most = file?.type.startsWith("video/") ? MAX_VIDEO_BYTES : MAX_IMAGE_BYTES;
      return file && file.size > most ? `The file is over ${most / 2 ** 20} MiB.` : null;
    },
  }],
  buttons: { Post: "" },
  async act() {
    const text = valueOf("text"), file = fileOf(byId("picture") as Control);
    const media = file ? [{ id: await progress.during((tell) => upload(file, tell)) }] : [];
    await call<Post>("POST", "posts", { text, media }).catch((error: unknown) => {
      if (file) forget(file, error);
      throw error;
    });
    compose.reset();
    say("note", "Posted.");
    go(`#/user/${me()}`);
  },
});

const DELETION = "All that you made goes with it, for good: posts, likes, follows, conversations and ads. If that stops half way, do it again.";

// Without a session, too: a user whose deletion stopped half way can no longer log in. A wrong password does not end the session.
const deletion = element("details", {}, element("summary", {}, "Delete account"), form({
  id: "delete-form",
  fields: [nameField("delete-name", "Your name", DELETION), passwordField("delete-password", "Your password")],
  buttons: { "Delete my account": "" },
  async act() {
    await call<Changed>("POST", "deletions", { name: valueOf("delete-name"), password: valueOf("delete-password") }).catch((error: unknown) => {
      throw error instanceof Refused && error.status === 401 ? new Refused(0, error.message) : error;
    });
    history.replaceState(null, "", "#/home");
    endSession("Your account is deleted.");
  },
})) as HTMLDetailsElement;

const finder = form({
  id: "search-form",
  fields: [{ id: "search", label: "Search", attributes: { type: "search", maxlength: "256", autocomplete: "off" } }],
  buttons: { Find: "" },
  async act() {
    const text = valueOf("search").trim();
    if (text) go(`#/search/${part(text)}`);
  },
});
finder.setAttribute("role", "search");

const account = element("section", { "aria-label": "Account" }, deletion);

start({
  title: "Social network",
  register: "users",
  home: "home",
  views: { home, user, search },
  links: (name) => ({ Home: "#/home", "My posts": `#/user/${name}` }),
  tools: [finder],
  above: [element("section", { "aria-labelledby": "h-compose" }, element("h2", { id: "h-compose" }, "New post"), compose, progress.element)],
  below: [account],
  begun: learnMine,
  ended() {
    favorites.clear();
    following.clear();
    deletion.open = false;
  },
  shown(who, kind, what) {
    const name = byId("delete-name") as HTMLInputElement;
    [name.value, name.readOnly] = [who?.name ?? "", who !== null];
    account.hidden = who !== null && (kind !== "user" || what !== who.name);
  },
});

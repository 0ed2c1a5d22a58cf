// SPDX-License-Identifier: Apache-2.0
// main.ts - the page: who is logged in, and which posts are shown. The part of the address behind '#' says which:
// #/home, #/user/NAME, #/search/TEXT.
import { byId, element, replace } from "../common/dom";
import { themeButton } from "../common/theme";
import { call, keepSession, part, Refused, session, type Changed, type People, type Post, type Posts, type Session, type Statistics } from "./api";
import { onPress, personLink, postElement, type PostActions } from "./post";
import { forget, upload } from "./upload";

const MAX_TEXT_BYTES = 4096, MAX_IMAGE_BYTES = 4 * 2 ** 20, MAX_VIDEO_BYTES = 16 * 2 ** 20;
const MAX_LIST_PAGES = 10; // of 100 users whom the user follows

interface View { title: string; path: string; from: string }
const views: Record<string, (what: string) => View> = {
  home: () => ({ title: "Home", path: "home?", from: "before" }),
  user: (name) => ({ title: `Posts of ${name}`, path: `users/${part(name)}/posts?`, from: "before" }),
  search: (text) => ({ title: `Posts with “${text}”`, path: `search/posts?newest=true&text=${part(text)}&`, from: "from" }),
};

const favorites = new Set<string>(); // posts that the user likes, as far as known
const following = new Set<string>(); // names
let turn = 0; // of the view that is shown: what comes late for another is dropped
let view = views["home"]!("");
let next = "0";

const field = (id: string) => byId(id) as HTMLInputElement;
const me = () => session()?.name ?? "";

function say(where: "note" | "problem", text: string): void {
  byId(where).textContent = text;
}

// Runs what calls the server. A session that the server no longer takes ends here.
async function attempt(act: () => Promise<void>): Promise<void> {
  say("problem", "");
  try {
    await act();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status === 401 && session()) endSession("Your session has ended: log in again.");
    else say("problem", `It did not work: ${error.message}`);
  }
}

function endSession(why: string): void {
  keepSession(null);
  favorites.clear();
  following.clear();
  replace(byId("posts"));
  replace(byId("people"));
  byId("account").querySelector("details")!.open = false;
  for (const id of ["compose-form", "delete-form"]) (byId(id) as HTMLFormElement).reset();
  say("problem", "");
  show();
  say("note", why);
  field("name").focus();
}

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
  toggle: (post) => attempt(async () => {
    const on = !favorites.has(post.id);
    const { changed } = await call<Changed>(on ? "PUT" : "DELETE", `favorites/${post.id}`);
    if (on) favorites.add(post.id);
    else favorites.delete(post.id);
    redraw({ ...post, favorites: String(Number(post.favorites ?? 0) + (changed ? (on ? 1 : -1) : 0)) });
  }),
  remove: (post) => attempt(async () => {
    await call<Changed>("DELETE", `posts/${post.id}`);
    shown(post.id)?.remove();
    say("note", "Deleted.");
    byId("h-view").focus();
  }),
};

const shown = (id: string) => byId("posts").querySelector(`:scope > li > [data-post="${id}"]`)?.parentElement;

function redraw(post: Post): void {
  const old = shown(post.id);
  if (!old) return;
  const key = old.contains(document.activeElement) ? document.activeElement?.getAttribute("data-key") : null;
  const made = postElement(post, actions);
  old.replaceWith(made);
  if (key) made.querySelector<HTMLElement>(`[data-key="${key}"]`)?.focus();
}

async function readPage(): Promise<void> {
  const mine = turn, first = next === "0";
  const page = await call<Posts>("GET", `${view.path}limit=20&${view.from}=${next}`);
  if (mine !== turn) return;
  const items = (page.posts ?? []).map((post) => postElement(post, actions));
  if (first) replace(byId("posts"), ...items);
  else byId("posts").append(...items);
  next = page.next ?? "0";
  byId("more").hidden = next === "0";
  if (first && items.length === 0 && !byId("about").textContent) byId("about").textContent = "There are no posts yet.";
}

// ----- what stands above them

function followButton(name: string): HTMLElement {
  const button = element("button", { type: "button", "data-key": "follow" });
  const draw = () => {
    button.textContent = following.has(name) ? "Unfollow" : "Follow";
  };
  draw();
  return onPress(button, () => attempt(async () => {
    const on = !following.has(name);
    await call<Changed>(on ? "PUT" : "DELETE", `following/${part(name)}`);
    if (on) following.add(name);
    else following.delete(name);
    draw();
    await describe(name);
  }));
}

async function describe(name: string): Promise<void> {
  const mine = turn;
  const of = await call<Statistics>("GET", `users/${part(name)}/statistics`);
  if (mine === turn) byId("about").textContent = `Posts: ${of.posts ?? 0}, followers: ${of.followers ?? 0}, following: ${of.following ?? 0}, likes: ${of.likesReceived ?? 0}`;
}

// Names begin with what was asked for; what no name can begin with finds none.
async function findPeople(text: string): Promise<void> {
  const mine = turn, prefix = text.trim().toLowerCase();
  if (!/^[a-z0-9_]{1,32}$/.test(prefix)) return;
  const found = (await call<People>("GET", `search/users?limit=10&prefix=${prefix}`)).people ?? [];
  if (mine !== turn || found.length === 0) return;
  replace(byId("people"), ...found.map((person) => element("li", {}, personLink(person.name))));
  byId("people").hidden = false;
}

function headOf(kind: string, what: string): HTMLElement[] {
  if (kind === "home") return [onPress(element("button", { type: "button", "data-key": "refresh" }, "Refresh"), async () => show())];
  return kind === "user" && what !== me() ? [followButton(what)] : [];
}

function where(): [string, string] {
  const [, kind = "", ...rest] = location.hash.split("/");
  try {
    return Object.hasOwn(views, kind) ? [kind, decodeURIComponent(rest.join("/"))] : ["home", ""];
  } catch {
    return ["home", ""];
  }
}

// Shows the page of the address, from its beginning.
function show(): void {
  const user = session();
  ++turn;
  for (const id of ["nav", "search-form", "log-out", "compose", "view"]) byId(id).hidden = !user;
  for (const id of ["entry", "account"]) byId(id).hidden = user !== null;
  field("delete-name").value = user?.name ?? "";
  field("delete-name").readOnly = user !== null;
  document.title = "Social network";
  if (!user) return;
  if (Number(user.expiresS) * 1000 < Date.now()) return endSession("Your session has ended: log in again.");
  const [kind, what] = where();
  byId("account").hidden = kind !== "user" || what !== user.name;
  view = views[kind]!(what);
  next = "0";
  document.title = `${view.title} – Social network`;
  byId("mine").setAttribute("href", `#/user/${user.name}`);
  for (const link of byId("nav").querySelectorAll("a")) {
    if (link.getAttribute("href") === `#/${kind}${what ? `/${what}` : ""}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  byId("h-view").textContent = view.title;
  byId("about").textContent = "";
  byId("people").hidden = true;
  byId("more").hidden = true;
  replace(byId("actions"), ...headOf(kind, what));
  if (kind !== "home") replace(byId("posts"));
  void attempt(async () => {
    if (kind === "user") await describe(what);
    if (kind === "search") await findPeople(what);
    await readPage();
  });
}

function go(address: string): void {
  if (location.hash === address) show();
  else location.hash = address;
}

// ----- forms and buttons

// One at a time.
function onSubmit(id: string, act: (event: SubmitEvent) => Promise<void>): void {
  let busy = false;
  byId(id).addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    say("note", "");
    await attempt(() => act(event));
    busy = false;
  });
}

onSubmit("entry-form", async (event) => {
  const into = (event.submitter as HTMLButtonElement | null)?.value ?? "sessions";
  const made = await call<Session>("POST", into, { name: field("name").value, password: field("password").value });
  keepSession(made);
  field("password").value = "";
  await learnMine();
  show();
  byId("h-view").focus();
});

onSubmit("compose-form", async () => {
  const text = field("text").value, file = field("picture").files?.[0];
  if (new TextEncoder().encode(text).length > MAX_TEXT_BYTES) throw new Refused(0, `the text is over ${MAX_TEXT_BYTES} bytes`);
  const most = file?.type.startsWith("video/") ? MAX_VIDEO_BYTES : MAX_IMAGE_BYTES;
  if (file && file.size > most) throw new Refused(0, `the file is over ${most / 2 ** 20} MiB`);
  const media = file ? [{ id: await upload(file) }] : [];
  await call<Post>("POST", "posts", { text, media }).catch((error: unknown) => {
    if (file) forget(file, error);
    throw error;
  });
  (byId("compose-form") as HTMLFormElement).reset();
  say("note", "Posted.");
  go(`#/user/${me()}`);
});

// Without a session, too: a user whose deletion stopped half way can no longer log in. A wrong password does not end the session.
onSubmit("delete-form", async () => {
  await call<Changed>("POST", "deletions", { name: field("delete-name").value, password: field("delete-password").value }).catch((error: unknown) => {
    throw error instanceof Refused && error.status === 401 ? new Refused(0, error.message) : error;
  });
  history.replaceState(null, "", "#/home");
  endSession("Your account is deleted.");
});

onSubmit("search-form", async () => {
  const text = field("search").value.trim();
  if (text) go(`#/search/${part(text)}`);
});

onPress(byId("more"), () => attempt(readPage));
byId("log-out").addEventListener("click", () => {
  const told = call<Changed>("DELETE", "sessions");
  endSession("Logged out.");
  told.catch((error: Refused) => {
    if (error.status !== 401) say("note", "Logged out on this page. The server was not told, so the token stays valid until it expires.");
  });
});
themeButton(byId("theme"));
addEventListener("hashchange", () => {
  show();
  if (session()) byId("h-view").focus();
});

void attempt(async () => {
  if (session()) await learnMine();
}).then(show);

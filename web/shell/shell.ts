// SPDX-License-Identifier: Apache-2.0
// shell.ts - the page of an application: who is logged in, and which view is shown. The part of the address behind '#' says which:
// #/user/NAME is the view `user` of NAME.
import { byId, element, replace } from "../common/dom";
import { themeButton } from "../common/theme";
import { attempt, onPress, onSessionEnd, say } from "./act";
import { call, hasExpired, keepSession, session, type Session } from "./client";
import { form, nameField, passwordField, valueOf } from "./form";

export interface View {
  title: string;
  actions?: HTMLElement[]; // buttons beside the title
  content: HTMLElement[];
  load(): Promise<unknown>; // fills the content
}

export interface Application {
  title: string;
  register: string; // where new users are posted: "users"
  home: string; // the first of the views
  // `visit` ends when the user goes on to another view.
  views: Record<string, (what: string, visit: AbortSignal) => View>;
  guests?: string[]; // the views for users who are not logged in; the others ask them to
  links(user: string): Record<string, string>; // texts and their addresses; for guests, too, if there are views for them: of ""
  tools?: HTMLElement[]; // in the header, for users who are logged in
  above?: HTMLElement[]; // sections over the view, for users who are logged in
  below?: HTMLElement[]; // sections under the view, which shown() hides and shows
  begun?(): Promise<unknown>; // called after a log-in, and when the page is loaded with a session
  ended?(): void; // called when the session has ended
  shown?(user: Session | null, kind: string, what: string): void;
}

let application: Application;
let visit = new AbortController();

// ----- views

function place(): [string, string] {
  const { views, home } = application, [, kind = "", ...rest] = location.hash.split("/");
  try {
    return Object.hasOwn(views, kind) ? [kind, decodeURIComponent(rest.join("/"))] : [home, ""];
  } catch {
    return [home, ""];
  }
}

function drawLinks(user: string, current: string): void {
  const links = Object.entries(application.links(user)).map(([text, href]) => {
    const link = element("a", { href, "data-key": href }, text);
    if (href === current) link.setAttribute("aria-current", "page");
    return link;
  });
  replace(byId("nav"), ...links);
}

// Of the view that is shown: for views that learn their titles from the server.
export function retitle(title: string): void {
  document.title = `${title} – ${application.title}`;
  byId("h-view").textContent = title;
}

// Shows the view of the address, from its beginning.
export function show(): void {
  const user = session(), { title, tools = [], above = [], guests = [] } = application;
  if (user && hasExpired(user)) return endSession("Your session has ended: log in again.");
  visit.abort();
  visit = new AbortController();
  const [kind, what] = place(), open = user !== null || guests.includes(kind);
  for (const one of [byId("log-out"), ...tools, ...above]) one.hidden = !user;
  byId("nav").hidden = !user && guests.length === 0;
  [byId("view").hidden, byId("entry").hidden] = [!open, open];
  application.shown?.(user, kind, what);
  document.title = title;
  drawLinks(user?.name ?? "", `#/${kind}${what ? `/${what}` : ""}`);
  if (!open) return replace(byId("content"));
  const view = application.views[kind]!(what, visit.signal);
  retitle(view.title);
  replace(byId("actions"), ...(view.actions ?? []));
  replace(byId("content"), ...view.content);
  void attempt(() => view.load());
}

export function go(address: string): void {
  if (location.hash === address) show();
  else location.hash = address;
}

// ----- sessions

export function endSession(why: string): void {
  keepSession(null);
  application.ended?.();
  for (const one of document.forms) one.reset();
  say("problem", "");
  show();
  say("note", why);
  byId(byId("entry").hidden ? "h-view" : "name").focus();
}

async function enter(into: string): Promise<void> {
  keepSession(await call<Session>("POST", into, { name: valueOf("name"), password: valueOf("password") }));
  (byId("entry-form") as HTMLFormElement).reset();
  await attempt(async () => application.begun?.()); // the session is there, whatever its first answers say
  show();
  byId(session() ? "h-view" : "name").focus();
}

function logOut(): void {
  const told = call("DELETE", "sessions");
  endSession("Logged out.");
  told.catch((error: { status?: number }) => {
    if (error.status !== 401) say("note", "Logged out on this page. The server was not told, so the token stays valid until it expires.");
  });
}

// Makes the page of the application.
export function start(made: Application): void {
  application = made;
  onSessionEnd(endSession);
  const { title, register, tools = [], above = [], below = [] } = application;
  byId("title").textContent = title;
  for (const one of [...tools, ...above, ...below]) one.hidden = true;
  byId("nav").after(...tools);
  byId("entry").append(form({
    id: "entry-form",
    fields: [nameField("name", "Name", "1 to 32 of a-z, 0-9 and _"), passwordField("password", "Password", "8 characters or more")],
    buttons: { "Log in": "sessions", Register: register },
    act: enter,
  }));
  byId("view").before(...above);
  byId("view").after(...below);
  byId("log-out").addEventListener("click", logOut);
  themeButton(byId("theme"));
  addEventListener("hashchange", () => {
    show();
    byId(byId("entry").hidden ? "h-view" : "name").focus();
  });
  void attempt(async () => session() && application.begun?.()).then(show);
}

export const refreshButton = (load: () => Promise<unknown>) => onPress(element("button", { type: "button", "data-key": "refresh" }, "Refresh"), load);

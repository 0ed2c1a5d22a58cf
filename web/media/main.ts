// SPDX-License-Identifier: Apache-2.0
// main.ts - the page of the movie reviews: #/movies/text=WORDS&genre=GENRE, #/movie/ID, #/watch/ID, #/user/NAME, #/rentals.
import { element, replace } from "../common/dom";
import { attempt, onPress, say } from "../shell/act";
import { call, once, part, read } from "../shell/client";
import { form, valueOf, type Field } from "../shell/form";
import { go, refreshButton, retitle, start, type View } from "../shell/shell";
import type { Ad, Ads, Movie, MoviePage, Movies, Photos, Review, Ticket } from "./api";
import { askedOf, filterOf, FILTERS, queryOf, yearProblem, type Filter } from "./filter";
import { genreLinks, movieItem, movieLink, movieList, reviewList } from "./lists";
import { player } from "./player";
import { rentals, rentForm } from "./rentals";

const MAX_TEXT_BYTES = 4096, MAX_STARS = 10;

// ----- finding movies

// Movies that the service chose, such as similar ones. There may be none, and there are none before the operator has run `media train`.
const chosen = async (path: string, visit: AbortSignal): Promise<Movie[]> => (await read<Movies>(path, visit)).movies ?? [];

const titled = (id: string, title: string, movies: Movie[]) =>
  movies.length === 0 ? [] : [element("h3", { id: `h-${id}` }, title), element("ul", { id, class: "list", "aria-labelledby": `h-${id}` }, ...movies.map(movieItem))];

// An ad that the user follows counts as clicked, even if that cannot be told.
function adLink({ id, movie }: Ad): HTMLElement {
  const link = movieLink(movie);
  link.addEventListener("click", () => void attempt(() => call<Ad>("POST", `ads/${part(id)}/click`)));
  return element("p", { class: "hint" }, "Promoted: ", link);
}

function finder(filter: Filter): HTMLElement {
  const field = (id: (typeof FILTERS)[number], label: string, more: Partial<Field> = {}): Field => ({ id, label, ...more, attributes: { value: filter[id] ?? "", autocomplete: "off", maxlength: "256", ...more.attributes } });
  const year = { attributes: { inputmode: "numeric", maxlength: "4" }, check: ({ value }: { value: string }) => yearProblem(value) };
  const made = form({
    id: "find-form",
    fields: [field("text", "Words", { hint: "Of the title, the cast or the plot", attributes: { type: "search" } }), field("genre", "Genre"), field("firstYear", "From year", year), field("lastYear", "To year", year)],
    buttons: { Find: "" },
    async act() {
      go(`#/movies/${queryOf(Object.fromEntries(FILTERS.map((name) => [name, valueOf(name)])))}`);
    },
  });
  made.setAttribute("role", "search");
  return made;
}

function movies(query: string, visit: AbortSignal): View {
  const filter = filterOf(query), list = movieList("movies", "Movies", `search?${askedOf(filter)}`, visit), forYou = element("div"), ads = element("div");
  const load = async () => {
    await list.load();
    replace(ads, ...((await read<Ads>("ads?limit=1", visit)).ads ?? []).map(adLink));
    if (Object.keys(filter).length === 0) replace(forYou, ...titled("for-you", "For you", await chosen("recommendations?limit=5", visit)));
  };
  return { title: "Movies", actions: [refreshButton(load)], content: [finder(filter), ads, forYou, element("h3", {}, "Movies"), list.element], load };
}

// ----- a movie

const promote = once((body: { movie: string }, key) => call<Ad>("POST", "ads", body, { key }));
const compose = once((body: { title: string; year: number; text: string; stars: number }, key) => call<Review>("POST", "reviews", body, { key }));

const reviewForm = ({ title, year }: Movie, written: () => Promise<unknown>) => {
  const made = form({
    id: "review-form",
    fields: [
      { id: "stars", label: "Stars", hint: `0 to ${MAX_STARS}`, attributes: { type: "number", required: "", min: "0", max: String(MAX_STARS), step: "1" } },
      {
        id: "text", label: "Review", tag: "textarea", attributes: { rows: "3", required: "", maxlength: String(MAX_TEXT_BYTES) },
        check: ({ value }) => (new TextEncoder().encode(value).length > MAX_TEXT_BYTES ? `The review is over ${MAX_TEXT_BYTES} bytes.` : null),
      },
    ],
    buttons: { Review: "" },
    async act() {
      await compose({ title, year, text: valueOf("text"), stars: Number(valueOf("stars")) });
      made.reset();
      await written();
      say("note", "Reviewed.");
    },
  });
  return made;
};

// What is known of a movie. Parts that could not be read are named, so that nobody takes them for empty ones.
function aboutMovie({ movie, cast, plot, rating, missing = [] }: MoviePage): HTMLElement[] {
  const lost = missing.length > 0 ? [element("p", { id: "missing", class: "error", role: "status" }, `Not readable now: ${missing.join(", ")}. Refresh to try again.`)] : [];
  const facts: Record<string, (HTMLElement | string)[]> = { Genres: genreLinks(movie).flatMap((link) => [link, " "]) };
  if (!missing.includes("cast")) facts["Cast"] = [(cast ?? []).join(", ")];
  if (!missing.includes("rating")) {
    const count = Number(rating?.reviews ?? 0);
    facts["Rating"] = [count === 0 ? "No reviews yet" : `${(Number(rating?.stars ?? 0) / count).toFixed(1)} of ${MAX_STARS}, by ${count} ${count === 1 ? "review" : "reviews"}`];
  }
  const plots = missing.includes("plot") ? [] : [element("p", { id: "plot" }, plot ?? "")];
  return [...lost, element("dl", {}, ...Object.entries(facts).flatMap(([name, values]) => [element("dt", {}, name), element("dd", {}, ...values)])), ...plots];
}

function pictureOf(movie: Movie, name: string): HTMLElement {
  return element("img", { src: `/v1/movies/${part(movie.id)}/photos/${part(name)}`, alt: `Picture of ${movie.title}`, loading: "lazy" });
}

function movie(id: string, visit: AbortSignal): View {
  const pictures = element("div"), about = element("div"), writing = element("div"), similar = element("div");
  const reviews = reviewList(`movies/${part(id)}/reviews`, "author", visit);
  const describe = async () => {
    const page = await read<MoviePage>(`movies/${part(id)}`, visit);
    retitle(`${page.movie.title} (${page.movie.year})`);
    replace(about, ...aboutMovie(page));
    return page.movie;
  };
  const load = async () => {
    const of = await describe();
    replace(writing, reviewForm(of, async () => (await describe(), await reviews.load())));
    await reviews.load();
    replace(pictures, ...((await read<Photos>(`movies/${part(id)}/photos`, visit)).names ?? []).map((name) => pictureOf(of, name)));
    replace(similar, ...titled("similar", "Similar movies", await chosen(`movies/${part(id)}/similar?limit=5`, visit)));
  };
  const watch = element("p", {}, element("a", { href: `#/watch/${part(id)}` }, "Watch"));
  const content = [pictures, about, element("h3", {}, "Rent"), rentForm(id), watch, element("h3", {}, "Write a review"), writing, element("h3", {}, "Reviews"), reviews.element, similar];
  const ad = onPress(element("button", { type: "button", "data-key": "promote" }, "Promote"), async () => {
    await promote({ movie: id });
    say("note", "Other users will see it as an ad.");
  });
  return { title: "Movie", actions: [refreshButton(load), ad], content, load };
}

// ----- watching

function watch(id: string, visit: AbortSignal): View {
  const made = player("The movie", visit), back = element("p", {}, element("a", { href: `#/movie/${part(id)}` }, "About the movie"));
  const load = async () => made.begin((await call<Ticket>("POST", `movies/${part(id)}/streams`, undefined, { visit })).playlist);
  return { title: "Watch", content: [made.element, back], load };
}

function user(name: string, visit: AbortSignal): View {
  const reviews = reviewList(`users/${part(name)}/reviews`, "movie", visit);
  return { title: `Reviews by ${name}`, actions: [refreshButton(reviews.load)], content: [reviews.element], load: reviews.load };
}

start({
  title: "Movies",
  register: "users",
  home: "movies",
  views: { movies, movie, watch, user, rentals },
  links: (name) => ({ Movies: "#/movies", Rentals: "#/rentals", "My reviews": `#/user/${name}` }),
});

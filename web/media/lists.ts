// SPDX-License-Identifier: Apache-2.0
// lists.ts - movies and reviews as elements. All that a user wrote is text.
import { element } from "../common/dom";
import { read } from "../shell/client";
import { pagedList } from "../shell/list";
import type { Movie, Movies, Review, Reviews } from "./api";
import { queryOf } from "./filter";

export const timeOf = (ms: string) => {
  const time = new Date(Number(ms));
  return element("time", { datetime: time.toISOString() }, time.toLocaleString());
};

export const movieLink = ({ id, title, year }: Pick<Movie, "id" | "title" | "year">) => element("a", { href: `#/movie/${id}` }, `${title} (${year})`);
export const genreLinks = (movie: Movie) => (movie.genres ?? []).map((genre) => element("a", { href: `#/movies/${queryOf({ genre })}` }, genre));
export const movieItem = (movie: Movie) => element("li", { class: "row" }, element("strong", {}, movieLink(movie)), ...genreLinks(movie));

// Movies at `path`, whose pages begin where the parameter `skip` says.
export const movieList = (id: string, label: string, path: string, visit: AbortSignal) => pagedList<Movie>({
  id, label, empty: "There is no such movie.",
  async read(skip) {
    const page = await read<Movies>(`${path}&limit=20&skip=${skip}`, visit);
    return { items: page.movies, next: page.next };
  },
  show: movieItem,
});

export function reviewItem(review: Review, of: "author" | "movie"): HTMLElement {
  const about = of === "author" ? element("a", { href: `#/user/${review.author.name}` }, review.author.name) : movieLink({ ...review, id: review.movie });
  return element("li", {}, element("div", { class: "row" }, about, element("strong", {}, `${review.stars ?? 0} of 10`), timeOf(review.createdMs)), element("p", {}, review.text));
}

export const reviewList = (path: string, of: "author" | "movie", visit: AbortSignal) => pagedList<Review>({
  id: "reviews", label: "Reviews", empty: "There are no reviews yet.",
  async read(before) {
    const page = await read<Reviews>(`${path}?before=${before}`, visit);
    return { items: page.reviews, next: page.next };
  },
  show: (review) => reviewItem(review, of),
});

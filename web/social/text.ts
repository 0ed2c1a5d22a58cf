// SPDX-License-Identifier: Apache-2.0
// text.ts - the text of a post in pieces: what is plain, whom it mentions, where it links.

export interface Person { id: string; name: string }
export interface Url { code: string; url: string }
export type Piece = { kind: "text"; text: string } | { kind: "person"; name: string } | { kind: "link"; url: string };

const MARK = /http:\/\/short-url\/([A-Za-z0-9]+)|@([a-z0-9_]+)/g;

// Only what a browser opens as a page: no "javascript:".
export function isWebUrl(url: string): boolean {
  try {
    return ["http:", "https:"].includes(new URL(url).protocol);
  } catch {
    return false;
  }
}

// A short URL becomes the one that it stands for. What stands for nothing stays as it is written.
export function piecesOf(text: string, urls: Url[], mentions: Person[]): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  const plain = (to: number) => {
    if (to > from) pieces.push({ kind: "text", text: text.slice(from, to) });
  };
  for (const found of text.matchAll(MARK)) {
    const [whole, code, name] = found;
    const url = urls.find((one) => one.code === code)?.url;
    const piece: Piece | null = url && isWebUrl(url) ? { kind: "link", url } : name && mentions.some((one) => one.name === name) ? { kind: "person", name } : null;
    if (!piece) continue;
    plain(found.index);
    pieces.push(piece);
    from = found.index + whole.length;
  }
  plain(text.length);
  return pieces;
}

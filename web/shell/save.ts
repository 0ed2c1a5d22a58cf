// SPDX-License-Identifier: Apache-2.0
// save.ts - gives the user a file.
import { element } from "../common/dom";

const KEPT_MS = 60_000; // for a browser that asks where to put it

export function save(bytes: Blob, name: string): void {
  const url = URL.createObjectURL(bytes);
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}

// SPDX-License-Identifier: Apache-2.0
// player.ts - plays a playlist of HLS by hls.js, and lets the user choose among its qualities.
/*! with hls.js (https://github.com/video-dev/hls.js), Copyright (c) 2017 Dailymotion, Apache License 2.0 */
import Hls, { type Level } from "hls.js/light";
import { element } from "../common/dom";
import { say } from "../shell/act";

const AUTOMATIC = -1; // as hls.js names it
const MOST_REPAIRS = 3;

const nameOf = ({ width, height, bitrate }: Level) => `${width}×${height}, ${Math.round(bitrate / 1000)} kbit/s`;

function qualities(hls: Hls): HTMLSelectElement {
  const options = [element("option", { value: String(AUTOMATIC) }, "Automatic"), ...hls.levels.map((level, number) => element("option", { value: String(number) }, nameOf(level)))];
  const select = element("select", { id: "quality" }, ...options) as HTMLSelectElement;
  select.addEventListener("change", () => (hls.nextLevel = Number(select.value)));
  return select;
}

// Why a video ended, in a user's words. Segments of a rental that was refunded or has ended are refused.
function reasonOf(status: number | undefined): string {
  if (status === 403) return "The pass is not taken any more: the rental was refunded. Rent the movie again.";
  if (status === 410) return "The rental has ended. Rent the movie again.";
  return "The video cannot be read. Reload the page to try again.";
}

// Loads when begin() is called with the playlist's address, and ends with `visit`. `label` names the video.
export function player(label: string, visit: AbortSignal): { element: HTMLElement; begin: (playlist: string) => void } {
  const video = element("video", { id: "video", "aria-label": label, controls: "", playsinline: "" }) as HTMLVideoElement;
  const choice = element("div", { class: "row" }), shown = element("p", { class: "hint", role: "status", id: "shown-quality" });
  const begin = (playlist: string) => {
    if (!Hls.isSupported()) return say("problem", "This browser cannot play the video: it lacks Media Source Extensions.");
    // The page's policy runs no script but its own file, so there is no worker. Segments come once the user plays: with the first one the
    // rental is not refunded any more.
    const hls = new Hls({ enableWorker: false, autoStartLoad: false });
    for (const wish of ["play", "seeking"]) video.addEventListener(wish, () => hls.startLoad(video.currentTime), { once: true });
    visit.addEventListener("abort", () => hls.destroy(), { once: true });
    hls.on(Hls.Events.MANIFEST_PARSED, () => choice.replaceChildren(element("label", { for: "quality" }, "Quality"), qualities(hls)));
    hls.on(Hls.Events.LEVEL_SWITCHED, (_, { level }) => (shown.textContent = `Shown: ${nameOf(hls.levels[level]!)}`));
    let repairs = 0;
    hls.on(Hls.Events.ERROR, (_, error) => {
      if (!error.fatal) return;
      if (error.type === Hls.ErrorTypes.MEDIA_ERROR && ++repairs <= MOST_REPAIRS) return hls.recoverMediaError();
      hls.destroy();
      say("problem", reasonOf(error.response?.code));
    });
    hls.loadSource(playlist);
    hls.attachMedia(video);
  };
  return { element: element("div", {}, video, choice, shown), begin };
}

// SPDX-License-Identifier: Apache-2.0
// The part of hls.js without subtitles, further sound tracks and encryption, which videos of `media render` do not have.
declare module "hls.js/light" {
  export * from "hls.js";
  export { default } from "hls.js";
}

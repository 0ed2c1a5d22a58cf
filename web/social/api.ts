// SPDX-License-Identifier: Apache-2.0
// api.ts - the messages of apps/social/social.proto.
import type { Person, Url } from "./text";

export interface MediaItem { id: string; type: string }
export interface Post {
  id: string; author: Person; text?: string; urls?: Url[]; mentions?: Person[]; media?: MediaItem[]; createdMs: string;
  replyTo?: string; original?: Post; favorites?: string; replies?: string; reposts?: string;
}
export interface Posts { posts?: Post[]; next?: string }
export interface People { people?: Person[]; next?: string }
export interface Statistics { posts?: string; followers?: string; following?: string; likesReceived?: string }
export interface Changed { changed?: boolean }

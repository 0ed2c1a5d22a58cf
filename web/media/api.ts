// SPDX-License-Identifier: Apache-2.0
// api.ts - the messages of apps/media/media.proto.

export interface Movie { id: string; title: string; year: number; genres?: string[] }
export interface Movies { movies?: Movie[]; next?: string }
export interface Review { id: string; author: { id: string; name: string }; movie: string; title: string; year: number; text: string; stars?: number; viewing?: string; createdMs: string }
export interface Reviews { reviews?: Review[]; next?: string }
export interface Rating { reviews?: string; stars?: string }
export interface MoviePage extends Reviews { movie: Movie; cast?: string[]; plot?: string; rating?: Rating; missing?: string[] }
export interface Photos { names?: string[] }
export interface Wallet { cents?: string }
export interface Rental { id: string; movie: string; days: number; cents: string; state?: "ACTIVE" | "REFUSED" | "REFUNDED" | "EXPIRED"; endsMs?: string; watched?: boolean }
export interface Rentals { rentals?: Rental[]; next?: string }
export interface Ad { id: string; movie: Movie }
export interface Ads { ads?: Ad[] }
export interface Ticket { playlist: string; endsMs: string }

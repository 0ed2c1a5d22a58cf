// SPDX-License-Identifier: Apache-2.0
// api.ts - the messages of apps/shop/shop.proto.

export interface Product { id: string; name: string; description?: string; cents: string; tags?: string[]; picture?: number }
export interface Products { products?: Product[]; next?: number }
export interface ProductPage { product: Product; available?: string; similar?: Product[]; missing?: string[] }
export interface Tags { tags?: { name: string; products: string }[] }
export interface Discount { code: string; percent?: number; centsOff?: string; leastCents?: string; endsMs?: string }
export interface Discounts { discounts?: Discount[] }
export interface BasketLine { product: Product; count: number; cents: string }
export interface Basket { lines?: BasketLine[]; goodsCents?: string }
export interface Address { id: string; name: string; street: string; city: string; postcode: string; country: string }
export interface Addresses { addresses?: Address[] }
export interface Card { id: string; lastFour: string; expires: string }
export interface Cards { cards?: Card[] }
export interface ShippingOption { name: string; cents?: string; days?: number }
export interface Checkout { basket?: Basket; addresses?: Address[]; cards?: Card[]; shipping?: ShippingOption[] }
export interface QuotedLine { product: string; name: string; cents: string; count: number }
export interface Quote {
  id: string; lines: QuotedLine[]; goodsCents: string; discountCents?: string; shippingCents?: string; totalCents: string;
  discountCode?: string; shippingOption: string; address: Address; card: Card;
}
export interface Order { id: string; state?: "COMMITTED" | "REJECTED" | "REFUNDED"; number?: string; reason?: string; quote: Quote; placedMs: string }
export interface Orders { orders?: Order[]; next?: string }
export interface Invoice { number: string }
export interface Shipment { tracking: string; dueMs: string }
export interface Wishlist { wishes?: { product: string; sinceMs: string }[]; share?: string }
export interface Profile { name: string; sinceMs: string }

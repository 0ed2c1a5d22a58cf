// SPDX-License-Identifier: Apache-2.0
//
// services/front_end.cc in node: what clients call. shop.proto says who may call, and what other services answer.
import grpc from "@grpc/grpc-js";
import { forClients, nameRequest, Sessions } from "./for_clients.mjs";
import { Code, main, Refused } from "./host.mjs";
import { protos } from "./protos.mjs";

const packages = protos("shop.proto"), { apps, shop } = packages.curtail, methods = shop.Shop.service;
const newestFirst = 1, mostBought = 10, similarShown = 6, cardDigitsShown = 4;
const clerk = "1"; // as clerk.h has it
const userOf = (user) => ({ user }), idsOf = (id) => ({ ids: [id] });
const noProduct = (product) => new Refused(Code.NOT_FOUND, `there is no product ${product}`);
// For a call that the answer can do without: a quarter of the time that is left, and 100 ms at most.
const optional = (call) => ({ withinMs: Math.min((call.getDeadline() - Date.now()) / 4, 100) });

// What all promises have come to, or the error of the first that failed.
async function all(...promises) {
  const settled = await Promise.allSettled(promises), failed = settled.find((one) => one.status === "rejected");
  if (failed) throw failed.reason;
  return settled.map((one) => one.value);
}

// What `first` has come to, the parts of a page by their names, and the names of those that failed.
async function withParts(first, parts) {
  const [done, ...settled] = await all(first, ...Object.values(parts).map((part) => part.catch(() => undefined)));
  const names = Object.keys(parts), got = Object.fromEntries(names.map((name, i) => [name, settled[i]]));
  return [done, got, names.filter((name) => got[name] === undefined)];
}

class FrontEnd {
  constructor(host) {
    const made = {};
    this.peer = (name, type) => (made[name] ??= host.peer(name, type));
    const peers = {
      login: apps.User, catalogue: shop.Catalogue, tags: shop.Tags, inventory: shop.Inventory, search: shop.Search, cart: shop.Cart,
      recommender: shop.Recommender, orders: shop.Orders, shipping: shop.Shipping, discounts: shop.Discounts, "address-book": shop.AddressBook,
    };
    for (const [name, type] of Object.entries(peers)) this[name] = this.peer(name, type);
    this.sessions = new Sessions(host, this.login);
  }

  Register(request, call) { return this.sessions.register(call, request, apps.User.service.Register); }

  Logout(request, call) { return this.sessions.end(call, request.token); }

  async Home(request, call, caller) {
    const within = optional(call);
    const newest = this.catalogue.List({ order: newestFirst, limit: request.limit });
    const tagged = this.tags.All({}, {}, within), codes = this.discounts.Current({}, {}, within);
    const parts = { tags: tagged, discounts: codes, cart: this.cart.Get(userOf(caller), {}, within) };
    const [{ products }, { tags, discounts, cart }, missing] = await withParts(newest, parts);
    return { newest: products, tags: tags?.tags, discounts: discounts?.discounts, basket_lines: cart?.lines.length, missing };
  }

  async GetProduct({ product }, call) {
    const within = optional(call), like = { products: [product], limit: similarShown };
    const parts = {
      inventory: this.inventory.Available(idsOf(product), {}, within),
      recommender: this.recommender.Similar(like, {}, within).catch((error) => {
        if (error.code !== Code.FAILED_PRECONDITION) throw error;
        return { products: [] }; // nothing was learned yet
      }),
    };
    const [{ products }, { inventory, recommender }, missing] = await withParts(this.catalogue.Get(idsOf(product)), parts);
    if (products.length === 0) throw noProduct(product);
    return { product: products[0], available: inventory?.stocks[0].on_hand, similar: recommender?.products, missing };
  }

  async RecommendProducts({ limit }, call, caller) {
    const { lines } = await this.cart.Get(userOf(caller));
    return this.recommender.For({ products: lines.map((line) => line.product), limit });
  }

  async GetBasket(_, call, caller) { return (await this.price(await this.cart.Get(userOf(caller)))).page; }

  // The products with the lines of a basket, and their weight.
  async price(basket) {
    const page = { lines: [], goods_cents: 0, version: basket.version };
    let grams = 0;
    if (basket.lines.length === 0) return { page, grams };
    const { products } = await this.catalogue.Get({ ids: basket.lines.map((line) => line.product) });
    const byId = new Map(products.map((product) => [product.id, product]));
    for (const { product: id, count } of basket.lines) {
      const product = byId.get(id);
      if (!product) throw noProduct(id);
      page.lines.push({ product, count, cents: product.cents * count });
      page.goods_cents += product.cents * count, grams += product.grams * count;
    }
    return { page, grams };
  }

  AddToBasket(request, call, caller) { return this.add(call, caller, request, ""); }

  // `part` tells the adds of one request apart.
  async add(call, owner, { product, count }, part) {
    if ((await this.catalogue.Get(idsOf(product))).products.length === 0) throw noProduct(product);
    const change = { owner, line: { product, count } };
    return this.cart.Add(change, nameRequest(call, methods.AddToBasket.path, shop.Cart.service.Add, change, part));
  }

  async Checkout(_, call, caller) {
    const of = userOf(caller);
    const book = this["address-book"];
    const [basket, { addresses }, { cards }] = await all(this.cart.Get(of), book.List(of), book.ListCards(of));
    const { page, grams } = await this.price(basket);
    const options = addresses.length > 0 && (await this.shipping.Options({ address: addresses[0], grams })).options;
    return { basket: page, addresses, cards, shipping: options || [] };
  }

  // A new quote in place of one that has expired becomes the client's.
  async PlaceOrder({ quote }, call, owner) {
    const owned = { owner, quote }, type = shop.Orders.service.Place;
    try {
      return await this.orders.Place(owned, nameRequest(call, methods.PlaceOrder.path, type, owned));
    } catch (error) {
      const fresh = error.metadata?.get("quote")[0], metadata = new grpc.Metadata();
      if (fresh === undefined) throw error;
      metadata.set("quote", fresh);
      throw new Refused(error.code, error.details, metadata);
    }
  }

  async Buy({ lines, address, card, shipping, code }, call, owner) {
    if (lines.length < 1 || lines.length > mostBought) {
      throw new Refused(Code.INVALID_ARGUMENT, `1 to ${mostBought} products are bought at once`);
    }
    for (const [i, line] of lines.entries()) await this.add(call, owner, line, `/${i}`);
    const wanted = { owner, lines, address, card, shipping, code };
    return this.orders.Buy(wanted, nameRequest(call, methods.Buy.path, shop.Orders.service.Buy, wanted));
  }

  // The name of the request has a digest of its content, by which a whole number could be guessed.
  AddCard({ number, expires }, call, owner) {
    const type = shop.AddressBook.service.AddCard, shown = { owner, number: number.slice(-cardDigitsShown), expires };
    return this["address-book"].AddCard({ owner, number, expires }, nameRequest(call, methods.AddCard.path, type, shown));
  }

  checkClerk(caller) {
    if (caller !== clerk) throw new Refused(Code.PERMISSION_DENIED, "only the clerk does this; `shop clerk` prints its token");
  }

  async PutProduct(request, call, caller) {
    this.checkClerk(caller);
    const wanted = request.product ?? {}, put = shop.Catalogue.service.Put;
    const product = await this.catalogue.Put(wanted, nameRequest(call, methods.PutProduct.path, put, wanted));
    await all(this.tags.Set({ product: product.id, tags: product.tags }), this.search.Enter(product));
    return product;
  }

  async DeliverStock({ delivery }, call, caller) {
    this.checkClerk(caller);
    const product = delivery?.product ?? "0";
    if ((await this.catalogue.Get(idsOf(product))).products.length === 0) throw noProduct(product);
    await this.inventory.Deliver(delivery ?? {});
    return { changed: true };
  }

  RefundOrder({ order }, call, caller) {
    this.checkClerk(caller);
    return this.orders.Refund({ order });
  }

  async PutDiscount({ discount }, call, caller) {
    this.checkClerk(caller);
    await this.discounts.Put(discount ?? {});
    return { changed: true };
  }
}

function frontEnd(host) {
  const made = new FrontEnd(host), own = (name) => made[name]?.bind(made);
  return [shop.Shop, forClients(host, shop.Shop, made.sessions, packages, made.peer, own)];
}

main("shop", { "front-end": frontEnd });

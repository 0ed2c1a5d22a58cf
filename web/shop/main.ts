// SPDX-License-Identifier: Apache-2.0
// main.ts - the shop's page: #/products/FILTER, #/product/ID, #/basket and #/shared/NAME for everybody; #/checkout, #/orders, #/order/ID, #/wishlist
// and #/account for users.
import { start } from "../shell/shell";
import { adoptBasket, basket } from "./basket";
import { account, checkout } from "./checkout";
import { product, products } from "./goods";
import { order, orders } from "./orders";
import { shared, wishlist } from "./wishlist";

start({
  title: "Shop",
  register: "users",
  home: "products",
  views: { products, product, basket, shared, checkout, orders, order, wishlist, account },
  guests: ["products", "product", "basket", "shared"],
  begun: adoptBasket,
  links: (user): Record<string, string> => ({ Products: "#/products", Basket: "#/basket", ...(user ? { Orders: "#/orders", Wishlist: "#/wishlist", Account: "#/account" } : { "Log in": "#/account" }) }),
});

// SPDX-License-Identifier: Apache-2.0
// wishlist.ts - products that users wish for: #/wishlist, and #/shared/NAME, which anybody sees who has the name.
import { element, replace } from "../common/dom";
import { onPress, say } from "../shell/act";
import { call, part, read } from "../shell/client";
import { refreshButton, type View } from "../shell/shell";
import type { Product, ProductPage, Wishlist } from "./api";
import { productItem } from "./goods";

async function productsOf({ wishes = [] }: Wishlist, visit: AbortSignal): Promise<Product[]> {
  return Promise.all(wishes.map(async ({ product }) => (await read<ProductPage>(`products/${part(product)}`, visit)).product));
}

function shownList() {
  const list = element("ul", { id: "wishes", class: "list", "aria-label": "Wishes" }), state = element("p", { class: "hint", role: "status" });
  const show = (items: HTMLElement[]) => {
    replace(list, ...items);
    state.textContent = items.length === 0 ? "There are no wishes yet." : "";
  };
  return { content: [state, list], show };
}

export function wishlist(_: string, visit: AbortSignal): View {
  const { content, show } = shownList(), shared = element("p", { id: "share" });
  const draw = async (found: Wishlist) => {
    const item = (product: Product) => productItem(product, onPress(element("button", { type: "button", "aria-label": `Remove ${product.name}` }, "Remove"), async () => {
      await draw(await call<Wishlist>("DELETE", `wishlist/${part(product.id)}`));
    }));
    show((await productsOf(found, visit)).map(item));
    replace(shared, ...(found.share ? ["Show others ", element("a", { href: `#/shared/${part(found.share)}` }, "this list")] : []));
  };
  const load = async () => draw(await read<Wishlist>("wishlist", visit));
  const share = onPress(element("button", { type: "button", "data-key": "share" }, "Share"), async () => {
    await draw(await call<Wishlist>("POST", "wishlist/share", {}));
    say("note", "Whoever has the address of the list can see it.");
  });
  return { title: "Wishlist", actions: [refreshButton(load), share], content: [...content, shared], load };
}

export function shared(name: string, visit: AbortSignal): View {
  const { content, show } = shownList();
  const load = async () => show((await productsOf(await read<Wishlist>(`wishlists/${part(name)}`, visit), visit)).map((one) => productItem(one)));
  return { title: "A wishlist", actions: [refreshButton(load)], content, load };
}

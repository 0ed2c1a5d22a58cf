// SPDX-License-Identifier: Apache-2.0
package curtail.shop;

import curtail.host.Host;
import java.util.Map;

/** The services cart, invoice and shipping of the shop. */
public final class Main {
  private Main() {}

  public static void main(String[] words) throws Exception {
    Host.main("shop", words, Map.of("cart", Cart::new, "invoice", Invoices::new, "shipping", Shipping::new));
  }
}

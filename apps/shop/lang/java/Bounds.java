// SPDX-License-Identifier: Apache-2.0
package curtail.shop;

import io.grpc.Status;
import io.grpc.StatusRuntimeException;

/** The bounds of apps/shop/data.h. */
final class Bounds {
  static final int MOST_ORDERS = 32;
  static final int MOST_LINES = 100;
  static final int MOST_OF_PRODUCT = 99;

  private Bounds() {}

  static StatusRuntimeException refuse(Status status, String message) {
    return status.withDescription(message).asRuntimeException();
  }

  static void checkCount(int count, String what) {
    if (count > MOST_ORDERS)
      throw refuse(Status.INVALID_ARGUMENT, count + " " + what + "; at most " + MOST_ORDERS + " are taken at once");
  }
}

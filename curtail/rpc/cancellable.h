// SPDX-License-Identifier: Apache-2.0
//
// cancellable.h - a part of a request that a context tells of the cancellation. For the runtime.
//
// Code: call/context.cc.
#pragma once

namespace curtail {

class Context;

namespace internal {

// A part of a request that its cancellation ends: a call it waits for, or work that runs elsewhere.
class Cancellable {
 public:
  virtual void OnCancel() = 0;

 protected:
  ~Cancellable() = default;

 private:
  friend class curtail::Context;
  // Guarded by the context's mutex.
  Cancellable* prev_ = nullptr;
  Cancellable* next_ = nullptr;
};

}  // namespace internal
}  // namespace curtail

// SPDX-License-Identifier: Apache-2.0
//
// signals.h - keeps the program's signal handlers off threads that the library starts.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace curtail {

// Threads started while it exists take no signals, but for signals that a thread causes itself. Use
// it in the thread that made it.
class SignalsKeptOut {
 public:
  SignalsKeptOut() {
    sigset_t all;
    sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigdelset(&all, own);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsKeptOut() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsKeptOut(const SignalsKeptOut&) = delete;
  SignalsKeptOut& operator=(const SignalsKeptOut&) = delete;

 private:
  sigset_t before_;
};

}  // namespace curtail

// SPDX-License-Identifier: Apache-2.0
//
// What holds the namespaces of a pod: it waits until it is told to end.
#include <signal.h>
#include <unistd.h>

static void End(int signal) { _exit(signal == 0); }

int main(void) {
  signal(SIGTERM, End);
  signal(SIGINT, End);
  for (;;) pause();
}

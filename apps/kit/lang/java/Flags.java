// SPDX-License-Identifier: Apache-2.0
package curtail.host;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A command line: "--name value" and "--name=value". Flags of the C++ host that mean nothing here are kept and not read. */
final class Flags {
  private static final Set<String> SWITCHES = Set.of("quiet", "any-machine", "fence-learn", "health-checks", "no-sync");

  private final Map<String, List<String>> flags = new HashMap<>();

  Flags(String[] words) {
    for (int i = 0; i < words.length; ++i) {
      String[] parts = words[i].replaceFirst("^--", "").split("=", 2);
      boolean next = parts.length == 1 && !SWITCHES.contains(parts[0]) && i + 1 < words.length;
      flags.computeIfAbsent(parts[0], name -> new ArrayList<>())
          .add(next ? words[++i] : parts.length == 2 ? parts[1] : "");
    }
  }

  List<String> all(String name, List<String> otherwise) {
    return flags.getOrDefault(name, otherwise);
  }

  String last(String name, String otherwise) {
    List<String> values = all(name, List.of());
    return values.isEmpty() ? otherwise : values.get(values.size() - 1);
  }

  /** The addresses of a name, of a flag whose values are NAME=ADDRESS,ADDRESS. */
  List<String> named(String flag, String name) {
    return all(flag, List.of()).stream().filter(value -> value.startsWith(name + "="))
        .flatMap(value -> Arrays.stream(value.substring(name.length() + 1).split(","))).toList();
  }
}

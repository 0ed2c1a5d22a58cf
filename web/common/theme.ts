// SPDX-License-Identifier: Apache-2.0
// theme.ts - a button that goes through the themes: the system's, light, dark.

const themes = ["system", "light", "dark"];

export function themeButton(button: HTMLElement): void {
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const next = themes[(themes.indexOf(root.dataset["theme"] ?? "system") + 1) % 3]!;
    if (next === "system") delete root.dataset["theme"];
    else root.dataset["theme"] = next;
    button.textContent = `Theme: ${next}`;
  });
}

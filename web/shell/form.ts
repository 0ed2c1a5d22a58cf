// SPDX-License-Identifier: Apache-2.0
// form.ts - forms that show errors at their fields, and the progress of an upload.
import { byId, element } from "../common/dom";
import { attempt, say } from "./act";

export type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

export interface Field {
  id: string;
  label: string;
  hint?: string;
  tag?: "input" | "textarea" | "select"; // by default "input"
  options?: [value: string, text: string][]; // of a "select"; the first is chosen, unless `attributes` have another `value`
  attributes?: Record<string, string>; // the rules of HTML among them, such as "required", are checked
  check?(control: Control): string | null; // returns the error
}

export interface FormOptions {
  id: string;
  fields: Field[];
  buttons: Record<string, string>; // their texts, and the `choice` that each makes; Enter presses the first
  act(choice: string): Promise<unknown>; // called if all fields are right, once at a time
}

export const nameField = (id: string, label: string, hint?: string): Field => ({
  id, label, ...(hint && { hint }),
  attributes: { autocomplete: "username", autocapitalize: "none", spellcheck: "false", required: "", maxlength: "32", pattern: "[a-z0-9_]+" },
});

export const passwordField = (id: string, label: string, hint?: string): Field => ({
  id, label, ...(hint && { hint }),
  attributes: { type: "password", autocomplete: "current-password", required: "", minlength: "8", maxlength: "256" },
});

export const valueOf = (id: string) => (byId(id) as HTMLInputElement).value;

interface MadeField { shown: HTMLElement; control: Control; check(): boolean; clear(): void }

// check() shows the error of the field, and returns whether there is none.
function fieldOf({ id, label, hint, tag, options = [], attributes = {}, check }: Field): MadeField {
  const hints = hint ? [element("p", { class: "hint", id: `${id}-hint` }, hint)] : [], error = element("p", { class: "error", id: `${id}-error` });
  const described = [...hints, error].map((one) => one.id).join(" ");
  const control = element(tag ?? "input", { id, "aria-describedby": described, ...attributes }) as Control;
  control.append(...options.map(([value, text]) => element("option", { value, ...(value === attributes["value"] && { selected: "" }) }, text)));
  const tell = (text: string) => {
    error.textContent = text;
    if (text) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
    return !text;
  };
  const checked = () => tell(control.validity.valid ? check?.(control) ?? "" : control.validationMessage);
  control.addEventListener("input", () => control.hasAttribute("aria-invalid") && checked());
  const shown = element("div", { class: "field" }, element("label", { for: id }, label), control, ...hints, error);
  return { shown, control, check: checked, clear: () => tell("") };
}

export function form({ id, fields, buttons, act }: FormOptions): HTMLFormElement {
  const made = fields.map(fieldOf);
  const submits = Object.entries(buttons).map(([text, value]) => element("button", { type: "submit", value }, text));
  const whole = element("form", { id, novalidate: "" }, ...made.map((one) => one.shown), element("div", { class: "row" }, ...submits)) as HTMLFormElement;
  whole.addEventListener("reset", () => made.forEach((one) => one.clear()));
  let busy = false;
  whole.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    const wrong = made.filter((one) => !one.check());
    if (wrong[0]) return wrong[0].control.focus();
    busy = true;
    say("note", "");
    await attempt(() => act((event.submitter as HTMLButtonElement).value)).finally(() => (busy = false));
  });
  return whole;
}

// A bar that is shown while during() runs, and advanced by the function that its argument gets.
export function progressBar(label: string) {
  const bar = element("progress", { "aria-label": label, hidden: "" }) as HTMLProgressElement;
  const tell = (done: number, whole: number) => {
    [bar.max, bar.value, bar.hidden] = [whole, done, false];
  };
  const during = <T>(act: (tell: (done: number, whole: number) => void) => Promise<T>) => act(tell).finally(() => (bar.hidden = true));
  return { element: bar, during };
}

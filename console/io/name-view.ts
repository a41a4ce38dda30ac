/** The field with the reader's own name. */

import { parseName } from "../address.ts";
import { element } from "./element.ts";

export function nameView(first: string, renamed: (name: string) => void): void {
  const form = element("self", HTMLFormElement);
  const field = element("name", HTMLInputElement);
  let current = first;
  field.value = first;
  const take = (): void => {
    const name = parseName(field.value) ?? current;
    field.value = name;
    if (name === current) return;
    current = name;
    renamed(name);
  };
  field.addEventListener("change", take);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    take();
    field.blur();
  });
}

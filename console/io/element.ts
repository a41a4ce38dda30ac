/** Elements of the page: found by id, or created with text. */

import { escapedMarks } from "../../shared/display-text.ts";

/** A missing element is an error in index.html. */
export function element<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`index.html has no ${kind.name} with the id ${id}`);
  return found;
}

/** Creates an element. Text content is never parsed as HTML, and no name reverses the text around it or looks like another one. */
export function tagged(tag: string, className: string, ...content: (Node | string)[]): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...content.map((part) => (typeof part === "string" ? escapedMarks(part) : part)));
  return made;
}

/** A name that is too long ends with an ellipsis, at its left in a right-to-left script. */
export function nameOf(name: string): HTMLElement {
  const made = tagged("span", "name", name);
  made.dir = "auto";
  return made;
}

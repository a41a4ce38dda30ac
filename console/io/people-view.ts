/** Shows who has written here: faces in the bar, names in the panel. */

import { colourOf, initialsOf } from "../person.ts";
import { element } from "./element.ts";

export type People = { readonly names: readonly string[]; readonly self: string; readonly latest: string | undefined };

const FACES_MAX = 4;
const NAMES_MAX = 12;

export function peopleView(): (people: People) => void {
  const faces = element("faces", HTMLElement);
  const list = element("people", HTMLElement);
  const nobody = element("nobody", HTMLElement);
  return ({ names, self, latest }) => {
    const shown = [...names.filter((name) => name === self), ...names.filter((name) => name !== self)];
    const more = (max: number): Node[] => (shown.length > max ? [moreFace(shown.length - max)] : []);
    faces.replaceChildren(...shown.slice(0, FACES_MAX).map(face), ...more(FACES_MAX));
    list.replaceChildren(...shown.slice(0, NAMES_MAX).map((name) => row(name, name === self, name === latest)), ...more(NAMES_MAX).map((node) => tagged("li", "", node)));
    nobody.hidden = shown.length > 0;
  };
}

function row(name: string, isSelf: boolean, isLatest: boolean): HTMLElement {
  const parts = [face(name), tagged("span", "name", name)];
  if (isSelf) parts.push(tagged("span", "note", "you"));
  if (isLatest) parts.push(tagged("span", "note wrote", "wrote last"));
  return tagged("li", isLatest ? `latest person-${colourOf(name)}` : "", ...parts);
}

function face(name: string): HTMLElement {
  const circle = tagged("span", `face person-${colourOf(name)}`, initialsOf(name));
  circle.ariaHidden = "true"; // The name stands beside it.
  return circle;
}

function moreFace(count: number): HTMLElement {
  return tagged("span", "face more", `+${count}`);
}

function tagged(tag: string, className: string, ...content: (Node | string)[]): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...content);
  return made;
}

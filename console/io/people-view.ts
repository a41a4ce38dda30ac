/** Shows who is here: faces in the bar, names in the panel, and how many. */

import { countRemark, inOrder, type Person } from "../people.ts";
import { initialsOf } from "../person.ts";
import { element } from "./element.ts";
import { tagged } from "./tagged.ts";

/** `latest`: the name under which the text last grew. */
export type PeopleHere = { readonly people: Iterable<Person>; readonly latest: string | undefined };

const FACES_MAX = 4;
const NAMES_MAX = 8;

export function peopleView(): (here: PeopleHere) => void {
  const faces = element("faces", HTMLElement);
  const list = element("people", HTMLElement);
  const count = element("people-count", HTMLElement);
  return ({ people, latest }) => {
    const shown = inOrder(people);
    const more = (max: number): Node[] => (shown.length > max ? [tagged("span", "face more", `+${shown.length - max}`)] : []);
    faces.replaceChildren(...shown.slice(0, FACES_MAX).map(face), ...more(FACES_MAX));
    list.replaceChildren(
      ...shown.slice(0, NAMES_MAX).map((person) => row(person, person.name === latest)),
      ...more(NAMES_MAX).map((node) => tagged("li", "", node)),
    );
    count.textContent = countRemark(shown.length);
  };
}

function row(person: Person, isLatest: boolean): HTMLElement {
  const parts = [face(person), tagged("span", "name", person.name)];
  if (person.self) parts.push(tagged("span", "note", "you"));
  const doing = whatIsDone(person, isLatest);
  if (doing !== undefined) parts.push(tagged("span", "note doing", doing));
  return tagged("li", `${person.role} ${isLatest ? "latest " : ""}person-${person.colour}`, ...parts);
}

function whatIsDone({ role, canWrite }: Person, isLatest: boolean): string | undefined {
  if (role === "spectator") return "watching";
  if (!canWrite) return "reading";
  return isLatest ? "wrote last" : undefined;
}

function face({ name, colour, role }: Person): HTMLElement {
  const circle = tagged("span", `face person-${colour} ${role}`, initialsOf(name));
  circle.ariaHidden = "true"; // The name stands beside it.
  return circle;
}

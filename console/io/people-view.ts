/** Shows the people in the room: faces in the bar, names and their number in the panel. */

import { parseName } from "../address.ts";
import { countRemark, inOrder, type ShownPerson } from "../people.ts";
import { initialsOf } from "../person.ts";
import { element, nameOf, tagged } from "./element.ts";

/** `latest`: name of the person who wrote last. */
type PeopleHere = { readonly people: Iterable<ShownPerson>; readonly latest: string | undefined };

const FACES_MAX = 4;
/** On a phone the bar also holds the room's name, the save status and a button. */
const FACES_ON_PHONE_MAX = 1;
const PHONE = "(max-width: 36rem)"; // As in people.css.
const NAMES_MAX = 6;

export function peopleView(): (here: PeopleHere) => void {
  const faces = element("faces", HTMLElement);
  const list = element("people", HTMLElement);
  const count = element("people-count", HTMLElement);
  const removeBots = element("remove-bots", HTMLElement);
  return ({ people, latest }) => {
    const shown = inOrder(people);
    const more = (max: number): Node[] => (shown.length > max ? [tagged("span", "face more", `+${shown.length - max}`)] : []);
    const facesMax = matchMedia(PHONE).matches ? FACES_ON_PHONE_MAX : FACES_MAX;
    faces.replaceChildren(...shown.slice(0, facesMax).map(face), ...more(facesMax));
    list.replaceChildren(
      ...shown.slice(0, NAMES_MAX).map((person) => row(person, person.name === latest)),
      ...more(NAMES_MAX).map((node) => tagged("li", "", node)),
    );
    count.textContent = countRemark(shown);
    const hasBots = shown.some(({ bot }) => bot);
    if (!hasBots && document.activeElement === removeBots) element("bots", HTMLElement).querySelector("button")?.focus(); // A hidden button loses the focus.
    removeBots.hidden = !hasBots;
  };
}

function row(person: ShownPerson, isLatest: boolean): HTMLElement {
  const parts = [face(person), nameOf(person.name)];
  if (person.self) parts.push(tagged("span", "note", "you"));
  const doing = whatIsDone(person, isLatest);
  if (doing !== undefined) parts.push(tagged("span", "note doing", doing));
  return tagged("li", `${person.role} ${isLatest ? "latest " : ""}person-${person.colour}`, ...parts);
}

function whatIsDone({ role, canWrite }: ShownPerson, isLatest: boolean): string | undefined {
  if (role === "spectator") return "watching";
  if (!canWrite) return "read only";
  return isLatest ? "wrote last" : undefined;
}

function face({ name, colour, role }: ShownPerson): HTMLElement {
  const circle = tagged("span", `face person-${colour} ${role}`, initialsOf(name));
  circle.ariaHidden = "true"; // The name is next to the face.
  return circle;
}

/** The field with the reader's own name. */
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

/** Other people's pointers on the canvas. Only those that move are touched, so that hundreds of them stay smooth. */

import type { Person } from "../people.ts";
import type { Crowd } from "./crowd.ts";
import { tagged } from "./tagged.ts";

const ARROW = '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M2.5 2.5l6 15 2.4-6.6 6.6-2.4z" /></svg>';

/** `layer`: moves and grows with the canvas; the pointers keep their size. */
export function pointersView(layer: HTMLElement, { people, onShown }: Crowd): void {
  const pointers = new Map<string, { readonly node: HTMLElement; readonly label: HTMLElement; look: string }>();

  const show = (id: string, person: Person | undefined): void => {
    const there = pointers.get(id);
    if (person?.pointer === undefined || person.self) {
      there?.node.remove();
      pointers.delete(id);
      return;
    }
    const pointer = there ?? add(id);
    const look = `pointer person-${person.colour} ${person.role}`;
    if (pointer.look !== look) pointer.node.className = pointer.look = look;
    if (pointer.label.textContent !== person.name) pointer.label.textContent = person.name;
    pointer.node.style.setProperty("--x", `${person.pointer.x}px`);
    pointer.node.style.setProperty("--y", `${person.pointer.y}px`);
  };
  const add = (id: string) => {
    const label = tagged("span", "pointer-name");
    const node = tagged("div", "pointer");
    node.innerHTML = ARROW;
    node.append(label);
    layer.append(node);
    const made = { node, label, look: "" };
    pointers.set(id, made);
    return made;
  };
  onShown((ids) => {
    for (const id of ids) show(id, people.get(id));
    layer.dataset["crowd"] = pointers.size > 24 ? "many" : "few"; // Names would cover everything.
  });
}

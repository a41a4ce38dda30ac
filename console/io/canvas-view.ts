/** Draws the canvas: shapes, and pointers of other people. A dragged shape is drawn at its current position. */

import type { Point } from "@coroom/client";

import type { ShownPerson } from "../people.ts";
import type { Shape } from "../shapes.ts";
import { tagged } from "./element.ts";
import type { RoomPeople } from "./room-people.ts";

/** `person`: undefined when the reader drags the shape. */
export type ShapeHold = { readonly place: Point; readonly person: ShownPerson | undefined };

type Drawn = { readonly node: HTMLElement; readonly words: HTMLElement };

export class ShapesView {
  readonly #layer: HTMLElement;
  readonly #drawn = new Map<string, Drawn>();

  constructor(layer: HTMLElement) {
    this.#layer = layer;
  }

  /** Draws the shapes from the lowest to the highest. */
  draw(shapes: readonly Shape[], held: ReadonlyMap<string, ShapeHold>, chosen: string | undefined): void {
    const ids = new Set(shapes.map(({ id }) => id));
    for (const [id, { node }] of this.#drawn) {
      if (ids.has(id)) continue;
      this.#drawn.delete(id);
      node.remove(); // Afterwards: text that is being written loses the focus, which draws again.
    }
    for (const [index, shape] of shapes.entries()) {
      const { node, words } = this.#drawn.get(shape.id) ?? this.#add(shape.id);
      const hold = held.get(shape.id);
      const { x, y } = hold?.place ?? shape;
      node.className = `shape ${shape.kind} person-${shape.colour}${shape.id === chosen ? " chosen" : ""}${hold === undefined ? "" : ` held${hold.person === undefined ? "" : " by-other"}`}`;
      node.style.cssText = `left:${x}px;top:${y}px;width:${shape.width}px;height:${shape.height}px;z-index:${hold === undefined ? index : shapes.length}`;
      if (hold?.person === undefined) node.removeAttribute("data-holder");
      else {
        node.dataset["holder"] = hold.person.name;
        node.style.setProperty("--holder", `var(--person-${hold.person.colour})`);
      }
      node.ariaLabel = shape.text === "" ? shape.kind : `${shape.kind}: ${shape.text}`;
      if (document.activeElement !== words && words.textContent !== shape.text) words.textContent = shape.text;
    }
  }

  /** Makes the text editable until it loses the focus. `text`: undefined when it did not change. */
  edit(id: string, done: (text: string | undefined) => void): void {
    const drawn = this.#drawn.get(id);
    if (drawn === undefined) return;
    const { words } = drawn;
    const before = words.innerText;
    words.contentEditable = "plaintext-only";
    words.role = "textbox";
    words.ariaLabel = "Text";
    words.ariaMultiLine = "true";
    words.focus();
    getSelection()?.selectAllChildren(words);
    words.addEventListener(
      "blur",
      () => {
        words.contentEditable = "false";
        words.role = words.ariaLabel = words.ariaMultiLine = null;
        done(words.innerText === before ? undefined : words.innerText.trimEnd());
      },
      { once: true },
    );
  }

  focus(id: string): void {
    this.#drawn.get(id)?.node.focus();
  }

  #add(id: string): Drawn {
    const words = tagged("div", "words");
    const node = tagged("div", "shape", words);
    node.dataset["id"] = id;
    node.tabIndex = 0;
    node.role = "group"; // Not a button: a button cannot contain editable text.
    node.setAttribute("aria-keyshortcuts", "Enter Delete Control+Z");
    this.#layer.append(node);
    const drawn = { node, words };
    this.#drawn.set(id, drawn);
    return drawn;
  }
}

/** More names would cover the canvas. */
const NAMES_MAX = 24;
const ARROW = '<svg viewBox="0 0 20 20" aria-hidden="true"><path d="M2.5 2.5l6 15 2.4-6.6 6.6-2.4z" /></svg>';

/**
 * Pointers of other people. An update touches only the pointers that moved, so that hundreds of pointers stay smooth.
 * `layer`: moves and zooms with the canvas. The pointers keep their size. The returned function takes the reader's own
 * position on the canvas, and shows the names of all pointers within `reach` canvas units.
 */
export function pointersView(layer: HTMLElement, { people, onShown }: RoomPeople): (own: Point | undefined, reach: number) => void {
  const pointers = new Map<string, { readonly node: HTMLElement; readonly label: HTMLElement; look: string }>();

  const show = (id: string, person: ShownPerson | undefined): void => {
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
    layer.dataset["crowd"] = pointers.size > NAMES_MAX ? "many" : "few";
  });
  return (own, reach) => {
    for (const [id, { node }] of pointers) {
      const at = people.get(id)?.pointer;
      const isNear = own !== undefined && at !== undefined && Math.hypot(at.x - own.x, at.y - own.y) <= reach;
      node.dataset["near"] = String(isNear);
    }
  };
}

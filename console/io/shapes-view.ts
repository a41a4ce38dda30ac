/** The shapes on the canvas, drawn where they lie; one that somebody drags, where it is right now. */

import type { Point } from "@coroom/client";

import type { Person } from "../people.ts";
import type { Shape } from "../shapes.ts";
import { tagged } from "./tagged.ts";

/** `person`: undefined for the reader's own hand. */
export type Hold = { readonly place: Point; readonly person: Person | undefined };

type Drawn = { readonly node: HTMLElement; readonly words: HTMLElement };

export class ShapesView {
  readonly #layer: HTMLElement;
  readonly #drawn = new Map<string, Drawn>();

  constructor(layer: HTMLElement) {
    this.#layer = layer;
  }

  /** In the order they lie in. */
  draw(shapes: readonly Shape[], held: ReadonlyMap<string, Hold>, chosen: string | undefined): void {
    const ids = new Set(shapes.map(({ id }) => id));
    for (const [id, { node }] of this.#drawn) {
      if (ids.has(id)) continue;
      node.remove();
      this.#drawn.delete(id);
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

  /** To be written in, until it loses the focus. `text`: undefined where it was left as it was. */
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
    node.role = "group"; // No button: those hold no text that can be written.
    node.setAttribute("aria-keyshortcuts", "Enter Delete Control+Z");
    this.#layer.append(node);
    const drawn = { node, words };
    this.#drawn.set(id, drawn);
    return drawn;
  }
}

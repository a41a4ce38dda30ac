/**
 * A bot that writes a line at the end of the text, pauses, and then undoes it. It removes only its own letters, even if
 * others typed into the line. So the text does not grow, even if bots run for a long time.
 */

import * as Y from "yjs";

import type { Prng } from "../../shared/collections/prng.ts";

const PHRASES = [
  "Is this the latest version?",
  "I would put the figures first.",
  "Good point, let us keep that.",
  "Who takes the second part?",
  "I am reading along from the train.",
  "Shall we meet at ten?",
  "This reads well now.",
];

export class Typist {
  readonly #text: Y.Text;
  readonly #prng: Prng;
  readonly #undo: Y.UndoManager;
  #phrase = "";
  #written = 0;
  #caret: Y.RelativePosition;
  #dueAt: number;

  constructor(text: Y.Text, prng: Prng, now: number) {
    this.#text = text;
    this.#prng = prng;
    this.#undo = new Y.UndoManager(text, { trackedOrigins: new Set([this]), captureTimeout: Infinity });
    this.#caret = caretAt(text, text.length);
    this.#dueAt = now + 3_000 * prng.unit();
  }

  /** Returns the new caret, or undefined when the caret did not change. */
  step(now: number): Y.RelativePosition | undefined {
    if (now < this.#dueAt) return undefined;
    if (this.#written === this.#phrase.length) this.#begin(now);
    else this.#type(now);
    return this.#caret;
  }

  undoAll(): void {
    while (this.#undo.undo() !== null);
    this.#undo.clear(); // The bot never redoes.
  }

  #begin(now: number): void {
    this.undoAll();
    this.#phrase = `\n${PHRASES[this.#prng.below(PHRASES.length)]}`;
    this.#written = 0;
    this.#caret = caretAt(this.#text, this.#text.length);
    this.#dueAt = now + 1_000 + 3_000 * this.#prng.unit();
  }

  #type(now: number): void {
    const { doc } = this.#text;
    const index = (doc && Y.createAbsolutePositionFromRelativePosition(this.#caret, doc)?.index) ?? this.#text.length;
    doc?.transact(() => this.#text.insert(index, this.#phrase.charAt(this.#written)), this);
    this.#caret = caretAt(this.#text, index + 1);
    this.#written += 1;
    const finished = this.#written === this.#phrase.length;
    this.#dueAt = now + (finished ? 3_000 + 5_000 * this.#prng.unit() : 110 + 180 * this.#prng.unit());
  }
}

/** The caret stays after the typed letter, even when others type before it. */
function caretAt(text: Y.Text, index: number): Y.RelativePosition {
  return Y.createRelativePositionFromTypeIndex(text, index, -1);
}

/**
 * Tentative edits: edits of other clients that arrive before they are in the log. Each is shown in its author's order
 * and held until its committed form arrives. If that takes too long the edit is resubmitted, because its author may be
 * gone. If it stays unconfirmed, the application receives it as `unconfirmed`. Rules TNT1 to TNT10.
 */

import { isSameBytes } from "../../shared/collections/bytes.ts";
import type { ClientId, Millis } from "../../shared/ids.ts";
import type { Counter, TentativeEdit } from "../../shared/wire/frames.ts";

export type TentativeOptions = {
  readonly editsMax: number;
  readonly bytesMax: number;
  /** Maximum number of authors whose committed counter is remembered; the oldest are removed first. */
  readonly authorsMax: number;
  readonly resubmitAfterMs: number;
  readonly resubmitJitterMs: number;
  readonly resubmitsMax: number;
  /** Maximum number of edits resubmitted at one time. */
  readonly resubmitsAtOnceMax: number;
};

type Held = { readonly edit: TentativeEdit; shown: boolean; resubmits: number };
/** `givenUp`: shown, resubmitted as often as allowed, and still not confirmed. */
export type DueEdits = { readonly resubmit: readonly TentativeEdit[]; readonly unconfirmed: readonly TentativeEdit[] };

type Author = { committed: Counter; /** Ordered by counter. */ held: Held[] };

export class TentativeEdits {
  readonly #options: TentativeOptions;
  readonly #unit: () => number;
  readonly #authors = new Map<ClientId, Author>();
  #size = 0;
  #bytes = 0;
  /** Undefined: nothing is held, or the log is slow. */
  #dueAt: Millis | undefined;

  /** `unit`: returns a number in [0, 1), so that clients do not resubmit at the same moment. */
  constructor(options: TentativeOptions, unit: () => number) {
    this.#options = options;
    this.#unit = unit;
  }

  get size(): number {
    return this.#size;
  }

  get isShowing(): boolean {
    return this.#size > 0 && [...this.#authors.values()].some(({ held }) => held.some(({ shown }) => shown));
  }

  get dueAt(): Millis | undefined {
    return this.#dueAt;
  }

  /** Returns the edits to show now, in the author's order. */
  receiveTentative(edit: TentativeEdit): TentativeEdit[] {
    const shown = this.receiveCommitted(edit.client, edit.ackedThrough); // The author knows that these are committed.
    const author = this.#authorOf(edit.client);
    const at = placeOf(edit.counter, author.held);
    if (edit.counter <= author.committed || author.held[at]?.edit.counter === edit.counter) return shown;
    if (this.#size >= this.#options.editsMax || this.#bytes + edit.payload.byteLength > this.#options.bytesMax) return shown;
    author.held.splice(at, 0, { edit, shown: false, resubmits: 0 });
    this.#count(edit, 1);
    return [...shown, ...showNext(author)];
  }

  /** The author's edits up to `through` are in the log. Returns the edits that may be shown now. */
  receiveCommitted(client: ClientId, through: Counter): TentativeEdit[] {
    const author = this.#authorOf(client);
    if (through <= author.committed) return [];
    author.committed = through;
    if (author.held.length === 0) return [];
    for (const { edit } of author.held.splice(0, placeOf(through + 1, author.held))) this.#count(edit, -1);
    if (this.#size === 0) this.#dueAt = undefined;
    return showNext(author);
  }

  /** Another client sent the same bytes as its own edit, after the original was abandoned. */
  receiveSame(payload: Uint8Array): void {
    if (this.#size === 0) return;
    for (const author of this.#authors.values()) {
      author.held = author.held.filter(({ edit, resubmits }) => {
        const isSame = resubmits > 0 && isSameBytes(edit.payload, payload);
        if (isSame) this.#count(edit, -1);
        return !isSame;
      });
    }
    if (this.#size === 0) this.#dueAt = undefined;
  }

  /** The log is saved again. Edits whose committed form does not follow shortly are resubmitted. */
  receiveSaved(now: Millis): void {
    if (this.#size > 0) this.#dueAt = this.#later(now);
  }

  /** While the log is slow or this client is offline, a missing confirmation means nothing. */
  receiveUnsaved(): void {
    this.#dueAt = undefined;
  }

  /** Returns the edits to resubmit, each author's in order, and those that were resubmitted often enough. */
  takeDue(now: Millis): DueEdits {
    if (this.#dueAt === undefined || now < this.#dueAt) return NONE_DUE;
    const [resubmit, unconfirmed]: [TentativeEdit[], TentativeEdit[]] = [[], []];
    for (const author of this.#authors.values()) {
      for (const { edit, shown } of this.#giveUp(author)) if (shown) unconfirmed.push(edit);
      for (const held of author.held.slice(0, this.#options.resubmitsAtOnceMax - resubmit.length)) {
        held.resubmits += 1;
        resubmit.push(held.edit);
      }
    }
    this.#dueAt = this.#size === 0 ? undefined : this.#later(now);
    return { resubmit, unconfirmed };
  }

  /** The edit was refused, or committed while this client did not receive edits. */
  #giveUp(author: Author): readonly Held[] {
    const tooOften = author.held.filter(({ resubmits }) => resubmits >= this.#options.resubmitsMax);
    if (tooOften.length > 0) author.held = author.held.filter(({ resubmits }) => resubmits < this.#options.resubmitsMax);
    for (const { edit } of tooOften) this.#count(edit, -1);
    return tooOften;
  }

  #later(now: Millis): Millis {
    return (now + this.#options.resubmitAfterMs + this.#unit() * this.#options.resubmitJitterMs) as Millis;
  }

  #authorOf(client: ClientId): Author {
    const known = this.#authors.get(client);
    if (known !== undefined) return known;
    if (this.#authors.size >= this.#options.authorsMax) this.#forgetOne();
    const author: Author = { committed: 0, held: [] };
    this.#authors.set(client, author);
    return author;
  }

  #forgetOne(): void {
    for (const [client, { held }] of this.#authors) {
      if (held.length > 0) continue;
      this.#authors.delete(client);
      return;
    }
  }

  #count({ payload }: TentativeEdit, sign: 1 | -1): void {
    this.#size += sign;
    this.#bytes += sign * payload.byteLength;
  }
}

const NONE_DUE: DueEdits = { resubmit: [], unconfirmed: [] };

/** Shows edits that directly follow those committed or shown. */
function showNext({ committed, held }: Author): TentativeEdit[] {
  const shown: TentativeEdit[] = [];
  let expected = committed + 1;
  for (const entry of held) {
    if (entry.edit.counter !== expected) break;
    if (!entry.shown) shown.push(entry.edit);
    entry.shown = true;
    expected += 1;
  }
  return shown;
}

function placeOf(counter: Counter, held: readonly Held[]): number {
  let at = held.length;
  while (at > 0 && held[at - 1]!.edit.counter >= counter) at -= 1;
  return at;
}

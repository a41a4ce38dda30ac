/**
 * Edits of others that reached the room before the log had them. Each is shown in its author's order, kept until
 * its committed form comes, and sent in again if it stays unconfirmed: its author may be gone. One that stays so even
 * then is handed back: it was shown here, and nobody else may have it. Rules TNT1 to TNT10.
 */

import type { ClientId, Millis } from "../../shared/ids.ts";
import type { Counter, TentativeEdit } from "../../shared/wire/frames.ts";

export type TentativeOptions = {
  readonly editsMax: number;
  readonly bytesMax: number;
  /** Authors whose committed counter is known; past it the longest known are forgotten. */
  readonly authorsMax: number;
  readonly resubmitAfterMs: number;
  readonly resubmitJitterMs: number;
  readonly resubmitsMax: number;
  /** Resubmitted at one time, at most. */
  readonly resubmitsAtOnceMax: number;
};

type Held = { readonly edit: TentativeEdit; shown: boolean; resubmits: number };
/** `givenUp`: shown, sent in as often as may be, and still not confirmed. */
export type DueEdits = { readonly resubmit: readonly TentativeEdit[]; readonly givenUp: readonly TentativeEdit[] };

type Author = { committed: Counter; /** By counter. */ held: Held[] };

export class TentativeEdits {
  readonly #options: TentativeOptions;
  readonly #unit: () => number;
  readonly #authors = new Map<ClientId, Author>();
  #size = 0;
  #bytes = 0;
  /** Undefined: nothing is held, or the log is slow still. */
  #dueAt: Millis | undefined;

  /** `unit`: a number in [0, 1), so that not everybody resubmits at once. */
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

  /** What to show now, in the author's order. */
  receive(edit: TentativeEdit): TentativeEdit[] {
    const shown = this.receiveCommitted(edit.client, edit.ackedThrough); // Its author knows them to be committed.
    const author = this.#authorOf(edit.client);
    const at = placeOf(edit.counter, author.held);
    if (edit.counter <= author.committed || author.held[at]?.edit.counter === edit.counter) return shown;
    if (this.#size >= this.#options.editsMax || this.#bytes + edit.payload.byteLength > this.#options.bytesMax) return shown;
    author.held.splice(at, 0, { edit, shown: false, resubmits: 0 });
    this.#count(edit, 1);
    return [...shown, ...showNext(author)];
  }

  /** The author's edits up to `through` are in the log. What this lets be shown. */
  receiveCommitted(client: ClientId, through: Counter): TentativeEdit[] {
    const author = this.#authorOf(client);
    if (through <= author.committed) return [];
    author.committed = through;
    if (author.held.length === 0) return [];
    for (const { edit } of author.held.splice(0, placeOf(through + 1, author.held))) this.#count(edit, -1);
    if (this.#size === 0) this.#dueAt = undefined;
    return showNext(author);
  }

  /** Somebody sent in the same bytes as an edit of its own, once they were given up elsewhere. */
  receiveSame(payload: Uint8Array): void {
    if (this.#size === 0) return;
    for (const author of this.#authors.values()) {
      author.held = author.held.filter(({ edit, resubmits }) => {
        const isSame = resubmits > 0 && isEqual(edit.payload, payload);
        if (isSame) this.#count(edit, -1);
        return !isSame;
      });
    }
    if (this.#size === 0) this.#dueAt = undefined;
  }

  /** The room is saved again: what its committed form does not follow soon, is sent in again. */
  receiveSaved(now: Millis): void {
    if (this.#size > 0) this.#dueAt = this.#later(now);
  }

  /** While the log is slow, or this client is away, it is too early to miss anything. */
  receiveUnsaved(): void {
    this.#dueAt = undefined;
  }

  /** What to send in again, each author's in order, and what was sent in often enough. */
  takeDue(now: Millis): DueEdits {
    if (this.#dueAt === undefined || now < this.#dueAt) return NONE_DUE;
    const [resubmit, givenUp]: [TentativeEdit[], TentativeEdit[]] = [[], []];
    for (const author of this.#authors.values()) {
      for (const { edit, shown } of this.#giveUp(author)) if (shown) givenUp.push(edit);
      for (const held of author.held.slice(0, this.#options.resubmitsAtOnceMax - resubmit.length)) {
        held.resubmits += 1;
        resubmit.push(held.edit);
      }
    }
    this.#dueAt = this.#size === 0 ? undefined : this.#later(now);
    return { resubmit, givenUp };
  }

  /** It is refused, or was committed where this client did not see it. */
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

const NONE_DUE: DueEdits = { resubmit: [], givenUp: [] };

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && a.every((byte, index) => byte === b[index]);
}

/** Those whose turn has come: behind what is committed or shown already. */
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

/**
 * Recorded editing sessions as the Yjs edits that their authors would have sent. The edits are made in advance, so that
 * a replay sends each author's edits in order and Yjs merges them in any order of arrival.
 */

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

import * as Y from "yjs";

export type RecordedTrace = {
  /** A list of edits for each author, in the order in which they were typed. */
  readonly editsByAuthor: readonly (readonly Uint8Array[])[];
  /** All edits, in an order in which a server could have received them. */
  readonly edits: readonly { readonly author: number; readonly edit: Uint8Array }[];
  readonly endText: string;
};

type Patch = readonly [position: number, deleted: number, inserted: string];
type Transaction = { readonly parents?: readonly number[]; readonly agent?: number; readonly patches: readonly Patch[] };

/** The name of the Y.Text in every replayed document. */
export const TRACE_TEXT = "text";

/** `editsMax` cuts the session. Its end text is then the text at that moment. */
export function readTrace(name: "friendsforever" | "automerge-paper", editsMax = Infinity): RecordedTrace {
  const file = new URL(`../traces/${name}.json.gz`, import.meta.url);
  const recorded = JSON.parse(gunzipSync(readFileSync(file)).toString()) as { numAgents?: number; endContent: string; txns: Transaction[] };
  const transactions = recorded.txns.slice(0, editsMax);
  const authors = Array.from({ length: recorded.numAgents ?? 1 }, (_, index) => new TraceAuthor(index));
  const edits: { author: TraceAuthor; edit: Uint8Array }[] = [];

  transactions.forEach(({ parents = [], agent = 0, patches }, index) => {
    const author = authors[agent]!;
    const missing = ancestorsNotIn(author.has, parents, transactions);
    for (const earlier of missing) author.apply(earlier, edits[earlier]!.edit);
    edits.push({ author, edit: author.type(index, patches) });
  });
  edits.forEach(({ edit }, index) => authors.forEach((author) => author.apply(index, edit)));

  const endText = authors[0]!.text;
  if (editsMax === Infinity && endText !== recorded.endContent) throw new Error(`the trace ${name} does not end in its recorded text`);
  return {
    editsByAuthor: authors.map((author) => edits.filter((made) => made.author === author).map(({ edit }) => edit)),
    edits: edits.map(({ author, edit }) => ({ author: authors.indexOf(author), edit })),
    endText,
  };
}

/** The earlier transactions that the author had seen in the recording and that this document does not have yet, oldest first. */
function ancestorsNotIn(has: ReadonlySet<number>, parents: readonly number[], transactions: readonly Transaction[]): number[] {
  const missing = new Set<number>();
  const open = [...parents];
  for (let index = open.pop(); index !== undefined; index = open.pop()) {
    if (has.has(index) || missing.has(index)) continue;
    missing.add(index);
    open.push(...(transactions[index]!.parents ?? [index - 1]).filter((parent) => parent >= 0));
  }
  return [...missing].sort((a, b) => a - b);
}

class TraceAuthor {
  readonly has = new Set<number>();
  readonly #doc = new Y.Doc();

  constructor(index: number) {
    this.#doc.clientID = index + 1; // Ascending, because only this order resolves ties at one position as the recording does.
  }

  get text(): string {
    return this.#doc.getText(TRACE_TEXT).toString();
  }

  apply(index: number, edit: Uint8Array): void {
    if (this.has.has(index)) return;
    this.has.add(index);
    Y.applyUpdate(this.#doc, edit);
  }

  type(index: number, patches: readonly Patch[]): Uint8Array {
    this.has.add(index);
    const made: Uint8Array[] = [];
    const collect = (edit: Uint8Array) => made.push(edit);
    this.#doc.on("update", collect);
    this.#doc.transact(() => {
      const text = this.#doc.getText(TRACE_TEXT);
      for (const [position, deleted, inserted] of patches) {
        if (deleted > 0) text.delete(position, deleted);
        if (inserted !== "") text.insert(position, inserted);
      }
    });
    this.#doc.off("update", collect);
    return made.length === 1 ? made[0]! : Y.mergeUpdates(made);
  }
}

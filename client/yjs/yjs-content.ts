/** Brings what comes from the room into the document, and tells what Yjs then does by itself from what people do. */

import * as Y from "yjs";

import type { Seq } from "../../shared/ids.ts";
import { deletesOnlyMarks } from "./yjs-edits.ts";

/** An edit, or a snapshot up to `seq`. */
export type Content = { readonly seq?: Seq; readonly payload: Uint8Array };

export class YjsContent {
  readonly #doc: Y.Doc;
  readonly #origin: unknown;
  readonly #reportError: (error: unknown) => void;
  #isApplying = false;
  /** Yjs's own, in the document that holds what came from the room. */
  #cleanup: Y.Transaction | undefined;

  /** `origin`: of what comes from the room. */
  constructor(doc: Y.Doc, origin: unknown, reportError: (error: unknown) => void) {
    this.#doc = doc;
    this.#origin = origin;
    this.#reportError = reportError;
    doc.on("afterTransaction", this.#receiveTransaction);
  }

  /**
   * In one transaction, so that an editor draws once, and one that is not `local`: bindings and undo go by that.
   * Returns those that could be read: bytes that are no Yjs update may be in a room, and it goes on without.
   */
  apply(edits: readonly Content[], onUnreadable: (cause: unknown, seq: Seq | undefined) => void): Uint8Array[] {
    const read: Uint8Array[] = [];
    const applyAll = (): void => {
      for (const { seq, payload } of edits) {
        try {
          Y.applyUpdate(this.#doc, payload, this.#origin);
          read.push(payload);
        } catch (cause) {
          onUnreadable(cause, seq);
        }
      }
    };
    this.#isApplying = true;
    try {
      Y.transact(this.#doc, applyAll, this.#origin, false);
    } catch (error) {
      this.#reportError(error); // An observer of the document threw: it is the application's own, and the document has it all.
    }
    this.#isApplying = false;
    this.#cleanup = undefined;
    return read;
  }

  /** Whether Yjs made it after what came from the room: it cleans up formatting that says nothing any more. */
  isCleanup(transaction: Y.Transaction): boolean {
    return transaction === this.#cleanup;
  }

  end(): void {
    this.#doc.off("afterTransaction", this.#receiveTransaction);
  }

  /** Before Yjs takes the content of what was deleted away. */
  readonly #receiveTransaction = (transaction: Y.Transaction): void => {
    if (this.#isApplying && transaction.origin === null && deletesOnlyMarks(transaction)) this.#cleanup = transaction;
  };
}

/**
 * Applies the room's edits to a Yjs document, and decides which changes of the document are sent to the room, and when.
 * Before the room is synced, changes are not sent one by one. At sync the difference between document and room is sent,
 * so content loaded from elsewhere is not sent again in each session.
 */

import * as Y from "yjs";

import { assert } from "../../shared/assert.ts";
import type { Seq } from "../../shared/ids.ts";
import { HOPS_MAX, UpdateRefused, withinBounds } from "../../shared/yjs/bounded-integration.ts";
import { checkUpdate } from "../../shared/yjs/checked-update.ts";
import type { ClientWorld } from "../ports.ts";
import { PendingContent } from "./pending-content.ts";
import {
  acceptedEdits,
  type Clocks,
  clocksBefore,
  contentSince,
  isUpdate,
  missingUpdate,
  isEmptyUpdate,
  splitEdit,
  yjsEdits,
  deletesOnlyMarks,
} from "./yjs-edits.ts";

/**
 * With two copies of Yjs, the document would have the room's edits, but its types would not: `getText()` would stay empty
 * without an error. Yjs reports only that it was loaded twice, without naming who loaded it.
 */
export function assertDoc(doc: unknown): void {
  const { store, on, transact } = (doc ?? {}) as Record<string, unknown>;
  assert(
    typeof store === "object" && typeof on === "function" && typeof transact === "function",
    '`doc` must be a Y.Doc: const doc = new Y.Doc(), with `import * as Y from "yjs"`',
  );
  assert(
    doc instanceof Y.Doc,
    '`doc` is a Y.Doc of another copy of Yjs than @coroom/client uses, so it would not show the room. Load yjs once: in Vite with resolve.dedupe: ["yjs"], in CommonJS with `import("yjs")` instead of `require("yjs")`, and see `npm ls yjs`.',
  );
}

/** An edit, or a snapshot up to `seq`. `isState`: a snapshot, or content of the local store, which may exceed an edit's limits. */
export type RoomContent = { readonly seq?: Seq; readonly payload: Uint8Array; readonly isState?: boolean };

/** `lacking`: content of other providers that the edits completed, and that the room lacks. */
type AppliedContent = { readonly read: readonly Uint8Array[]; readonly lacking: Uint8Array | undefined };

/** A snapshot contains many edits, which the document service has merged in limited time. */
const STATE_HOPS_MAX = 20 * HOPS_MAX;

/**
 * Applies edits of the room to the document, and recognizes the cleanup that Yjs does by itself afterwards. Notices when
 * the document can no longer follow the room.
 */
export class YjsContent {
  readonly #doc: Y.Doc;
  readonly #origin: unknown;
  readonly #world: Pick<ClientWorld, "clock" | "reportError">;
  readonly #onStuck: (cause: unknown) => void;
  readonly #pending: PendingContent;
  #isStuck = false;
  #isCheckPlanned = false;
  #isApplying = false;
  /** The transaction in which Yjs cleaned up after edits of the room. */
  #cleanup: Y.Transaction | undefined;

  /** `origin`: transaction origin of the room's edits. `onStuck`: called once. */
  constructor(doc: Y.Doc, origin: unknown, world: Pick<ClientWorld, "clock" | "reportError">, onStuck: (cause: unknown) => void) {
    this.#doc = doc;
    this.#origin = origin;
    this.#world = world;
    this.#onStuck = onStuck;
    this.#pending = new PendingContent(doc);
    doc.on("beforeTransaction", this.#planCheck);
    doc.on("afterTransaction", this.#receiveTransaction);
  }

  /** The document no longer follows the room. */
  get isStuck(): boolean {
    return this.#isStuck;
  }

  receiveStuck(cause: unknown): void {
    if (this.#isStuck) return;
    this.#isStuck = true;
    this.#onStuck(cause);
  }

  /**
   * Applies all edits in one transaction, so that an editor renders once. The transaction is not `local`, which
   * bindings and undo managers rely on. An edit that is not a Yjs update or exceeds a limit is left out, here and in
   * all other documents of the room. `onUnreadable` is called after the transaction: a listener of the application may
   * change the document, and that change must not count as the room's.
   */
  apply(edits: readonly RoomContent[], onUnreadable: (cause: unknown, edit: RoomContent) => void): AppliedContent {
    if (this.#isStuck) return { read: [], lacking: undefined };
    const read: Uint8Array[] = [];
    const unreadable: [cause: unknown, edit: RoomContent][] = [];
    let stuck: unknown;
    const applyAll = (): void => {
      for (const edit of edits) {
        const { payload, isState = false } = edit;
        if (stuck !== undefined) return;
        try {
          const check = isState ? undefined : checkUpdate(payload, this.#doc);
          if (check?.kind === "unfit") throw check.cause ?? new UpdateRefused(check.why);
          try {
            withinBounds(() => Y.applyUpdate(this.#doc, payload, this.#origin), isState ? STATE_HOPS_MAX : HOPS_MAX);
          } catch (cause) {
            if (!isState || cause instanceof UpdateRefused) stuck = cause; // The document has a part of the edit.
            throw cause;
          }
          read.push(payload);
        } catch (cause) {
          unreadable.push([cause, edit]);
        }
      }
    };
    this.#isApplying = true;
    const lacking = this.#pending.lackingAfter(() => {
      try {
        Y.transact(this.#doc, applyAll, this.#origin, false);
      } catch (error) {
        if (hasFailed(this.#doc)) stuck = error;
        else this.#world.reportError(error); // An observer of the application threw. The document has all edits nevertheless.
      }
      return read;
    });
    this.#isApplying = false;
    this.#cleanup = undefined;
    for (const [cause, edit] of unreadable) onUnreadable(cause, edit);
    if (stuck !== undefined) this.receiveStuck(stuck);
    return { read, lacking };
  }

  /** True: Yjs made the transaction after edits of the room, to remove formatting marks without effect. */
  isCleanup(transaction: Y.Transaction): boolean {
    return transaction === this.#cleanup;
  }

  end(): void {
    this.#doc.off("beforeTransaction", this.#planCheck);
    this.#doc.off("afterTransaction", this.#receiveTransaction);
  }

  /** Yjs may fail after any transaction, also of the application. Checked when the task, and so each transaction, has ended. */
  readonly #planCheck = (): void => {
    if (this.#isCheckPlanned) return;
    this.#isCheckPlanned = true;
    this.#world.clock.soon(() => {
      this.#isCheckPlanned = false;
      if (hasFailed(this.#doc)) this.receiveStuck(new Error(FAILED));
    });
  };

  /** Runs before Yjs removes deleted content. */
  readonly #receiveTransaction = (transaction: Y.Transaction): void => {
    if (this.#isApplying && transaction.origin === null && deletesOnlyMarks(transaction)) this.#cleanup = transaction;
  };
}

/** Yjs ends a transaction only after all listeners of its events, so one that throws there ends the document. */
const FAILED =
  "Yjs failed in a transaction of the document, which emits no changes since. A listener of the document's event `update` may have thrown: see the console";

/**
 * Yjs failed between two transactions of the document, for example because its stack was exhausted. Since then the
 * document emits no updates. Call outside of transactions.
 */
function hasFailed(doc: Y.Doc): boolean {
  return doc._transaction === null && doc._transactionCleanups.length > 0;
}

/** The room that receives the changes. `editBytesMax`: undefined until it is known. `waiting`: payloads of its unacknowledged edits. */
type ChangesRoom = {
  send(payload: Uint8Array): void;
  readonly editBytesMax: number | undefined;
  readonly waiting: readonly Uint8Array[];
};

type Mode =
  /** The room's content is not known yet. `received`: its content so far. `made`: number of local changes meanwhile. */
  | { readonly kind: "meeting"; readonly received: Uint8Array[]; readonly hadContent: boolean; made: number }
  /** Each change is sent at once. */
  | { readonly kind: "following" }
  /** A change could not be sent, and later changes would be unreadable without it. Everything from `since` on waits. */
  | { readonly kind: "withholding"; readonly since: Clocks; made: number };

/** Decides which changes of the document are sent to the room, and when. */
export class YjsChanges {
  readonly #doc: Y.Doc;
  readonly #room: ChangesRoom;
  #mode: Mode;
  /** Content that the document has and the room lacks. Local changes may build on it. At most as large as the document. */
  #unconfirmed: Uint8Array | undefined;
  readonly #onRefused: (why: string) => void;

  /** `onRefused`: no document of the room would accept a change, so it was not sent. */
  constructor(doc: Y.Doc, room: ChangesRoom, onRefused: (why: string) => void) {
    this.#doc = doc;
    this.#room = room;
    this.#onRefused = onRefused;
    this.#mode = { kind: "meeting", received: [], hadContent: doc.store.clients.size > 0, made: 0 };
  }

  /** Number of local changes that were not given to the room yet. */
  get unsent(): number {
    return this.#mode.kind === "following" ? 0 : this.#mode.made;
  }

  get isMeeting(): boolean {
    return this.#mode.kind === "meeting";
  }

  /** True: the room may lack content that no count includes. */
  get mayLack(): boolean {
    return this.#mode.kind === "meeting" && this.#mode.hadContent;
  }

  receiveChange(update: Uint8Array): void {
    this.sendUnconfirmed();
    switch (this.#mode.kind) {
      case "meeting":
        this.#mode.made += 1;
        return;
      case "following":
        return this.#send(update);
      case "withholding":
        this.#mode.made += 1;
        return this.tryAgain();
    }
  }

  /** The document has this content, and the room lacks it. Others cannot read later local changes without it. */
  receiveLacking(update: Uint8Array): void {
    if (this.#mode.kind === "withholding") this.withhold(update);
    else this.receiveChange(update);
  }

  /** The document and the room have this content. */
  receiveContent(payloads: readonly Uint8Array[]): void {
    if (this.#mode.kind !== "meeting") return;
    for (const payload of payloads) this.#mode.received.push(payload);
  }

  /**
   * The content of the local store has been applied. From now on each change is sent, because only sent changes are
   * stored. There is one exception: the document had content before, and nothing is known of the room, which may also
   * have that content.
   */
  receiveRestored(isRoomKnown: boolean): void {
    if (this.#mode.kind === "meeting" && (isRoomKnown || !this.#mode.hadContent)) this.#follow(this.#mode);
  }

  /** The room is synced. A change that was too large may have become smaller while there was no connection. */
  receiveSynced(): void {
    if (this.#mode.kind === "meeting") this.#follow(this.#mode);
    else this.tryAgain();
  }

  /** The log lost content that this document still has. */
  meetAgain(): void {
    this.#mode = { kind: "meeting", received: [], hadContent: true, made: this.unsent };
  }

  /** Content of others that the room lost and this client may not write yet. */
  keepUnconfirmed(payloads: readonly Uint8Array[]): void {
    const kept = this.#unconfirmed === undefined ? payloads : [this.#unconfirmed, ...payloads];
    if (kept.length > 0) this.#unconfirmed = yjsEdits.merge(kept);
  }

  /** Call when the client may write, or has made a change, because others could not read that change without this content. */
  sendUnconfirmed(): void {
    const unconfirmed = this.#unconfirmed;
    this.#unconfirmed = undefined;
    if (unconfirmed !== undefined) this.#send(unconfirmed);
  }

  withhold(payload: Uint8Array): void {
    if (this.#mode.kind === "meeting") return; // Missing content is sent at the next sync.
    const since = clocksBefore([payload]);
    if (this.#mode.kind === "following") this.#mode = { kind: "withholding", since, made: 1 };
    else this.#mode = { kind: "withholding", since: earliest(this.#mode.since, since), made: this.#mode.made + 1 };
  }

  /** Content that was too large may be smaller now (for example after an undo), or the outbox may have space. */
  tryAgain(): void {
    const bytesMax = this.#room.editBytesMax;
    if (this.#mode.kind !== "withholding" || bytesMax === undefined) return;
    const withheld = contentSince(this.#mode.since, this.#doc);
    if (withheld.byteLength > bytesMax && splitEdit(withheld, bytesMax) === undefined) return;
    this.#mode = { kind: "following" };
    if (!isEmptyUpdate(withheld)) this.#send(withheld);
  }

  #send(change: Uint8Array): void {
    const edits = acceptedEdits(change, this.#doc);
    if (typeof edits === "string") this.#onRefused(edits);
    else for (const edit of edits) this.#room.send(edit);
  }

  #follow({ received, hadContent, made }: Mode & { kind: "meeting" }): void {
    this.#mode = { kind: "following" };
    const lacking = hadContent || made > 0 ? missingUpdate([...received, ...this.#room.waiting.filter(isUpdate)], this.#doc) : undefined;
    if (lacking !== undefined) this.#send(lacking);
  }
}

function earliest(a: Clocks, b: Clocks): Clocks {
  const clocks = new Map(a);
  for (const [client, clock] of b) clocks.set(client, Math.min(clock, clocks.get(client) ?? clock));
  return clocks;
}

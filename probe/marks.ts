/**
 * Edits that say which they are: Yjs updates, each of which replaces what its writer wrote before, so that a room's
 * document grows by a few bytes with each start of a probe, and not by its edits. Anything but a Yjs update would never
 * be in a snapshot, and so never leave the log.
 */

import * as Y from "yjs";

/** `run`: of one probe since its start, for others may be in the same room. `number`: as the room's ledger has it. */
export type Mark = { readonly run: string; readonly number: number };

const FIELD = "probe";

export class MarkWriter {
  readonly #doc = new Y.Doc();
  readonly #key: string;
  readonly #run: string;

  /** `key`: of this writer in this room, the same at each start. `yjsClient`: a number that nobody else has. */
  constructor(key: string, run: string, yjsClient: number) {
    this.#key = key;
    this.#run = run;
    this.#doc.clientID = yjsClient;
  }

  write(number: number): Uint8Array {
    const before = Y.encodeStateVector(this.#doc);
    this.#doc.getMap(FIELD).set(this.#key, `${this.#run}:${number}`);
    return Y.encodeStateAsUpdate(this.#doc, before);
  }
}

/** Undefined: of something else's making. */
export function markOf(payload: Uint8Array): Mark | undefined {
  const [, run, number] = /^([\w-]+):(\d{1,15})$/.exec(textIn(payload)) ?? [];
  return run === undefined ? undefined : { run, number: Number(number) };
}

/** What the update's last struct holds. */
function textIn(payload: Uint8Array): string {
  try {
    const struct = Y.decodeUpdate(payload).structs.at(-1);
    return struct instanceof Y.Item ? String(struct.content.getContent()[0]) : "";
  } catch {
    return ""; // Strangers may send what they like.
  }
}

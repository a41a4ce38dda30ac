/**
 * Edits that a probe recognizes: Yjs updates that each replace the writer's last one. So the document grows by a few
 * bytes per probe start, and not per edit. The edits must be Yjs updates, because only these are included in snapshots
 * and trimmed from the log.
 */

import * as Y from "yjs";

/**
 * `run`: identifies one probe since its start, because other probes may be in the room. `number`: the edit's number in
 * the room's ledger.
 */
type EditMark = { readonly run: string; readonly number: number };

const FIELD = "probe";

export class MarkWriter {
  readonly #doc = new Y.Doc();
  readonly #key: string;
  readonly #run: string;

  /**
   * `key`: identifies the writer in this room, the same at each start. `yjsClient`: a Yjs client id of this writer
   * alone.
   */
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

/** Undefined: not written by a probe. */
export function markOf(payload: Uint8Array): EditMark | undefined {
  const [, run, number] = /^([\w-]+):(\d{1,15})$/.exec(textIn(payload)) ?? [];
  return run === undefined ? undefined : { run, number: Number(number) };
}

/** Returns the text of the update's last struct. */
function textIn(payload: Uint8Array): string {
  try {
    const struct = Y.decodeUpdate(payload).structs.at(-1);
    return struct instanceof Y.Item ? String(struct.content.getContent()[0]) : "";
  } catch {
    return ""; // Other writers may send any bytes.
  }
}

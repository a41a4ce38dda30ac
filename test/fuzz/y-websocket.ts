/**
 * Messages of the y-websocket protocol and of Hocuspocus, and the awareness of one client. An input has several
 * messages, each preceded by two bytes with its length.
 */

import * as encoding from "lib0/encoding";
import * as Y from "yjs";

import { assert } from "../../shared/assert.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { decodeHocuspocus, toDocument } from "../../bridges/hocuspocus-protocol.ts";
import { YAwareness } from "../../bridges/y-awareness.ts";
import {
  decodeYMessage,
  encodeAwareness,
  encodeStateless,
  encodeSyncAnswer,
  encodeSyncRequest,
  encodeUpdate,
  readJson,
  visitStates,
  type YMessage,
  type YState,
} from "../../bridges/y-websocket-protocol.ts";
import { amongOthers, assertEqual, heldSize } from "./held.ts";
import { inParts, joinedParts } from "./parts.ts";

const [OWN, OTHER] = [42, 7];

export function seeds(): Uint8Array[] {
  const doc = new Y.Doc();
  doc.clientID = OWN;
  doc.getText("t").insert(0, "abc");
  const update = Y.encodeStateAsUpdate(doc);
  const states = [
    { client: OWN, clock: 1, json: '{"user":{"name":"Ann"}}' },
    { client: OTHER, clock: 2, json: "null" },
  ];
  const messages = [
    encodeSyncRequest(Y.encodeStateVector(doc)),
    encodeSyncAnswer(update),
    encodeUpdate(update),
    encodeAwareness(states),
    encodeAwareness([{ client: OWN, clock: 2, json: '{"yjs":1,"@own":2,"cursor":null}' }]),
    encodeStateless("text"),
    encoding.encode((out) => encoding.writeVarUint(out, 3)),
  ];
  const ofHocuspocus = messages.map((message) => toDocument("notes", message));
  return [...[...messages, ...ofHocuspocus].map((message) => joinedParts([message])), joinedParts(messages)];
}

export function fuzz(input: Uint8Array): boolean {
  const messages = inParts(input).map(amongOthers);
  const awareness = new ClientAwareness();
  const decoded = messages.map((bytes) => {
    const ofHocuspocus = decodeHocuspocus(bytes);
    assert(heldSize(ofHocuspocus, bytes) <= bytes.byteLength, "a message holds no more than its bytes");
    const message = decodeYMessage(bytes);
    if (message !== undefined) checkMessage(message, bytes);
    if (message?.kind === "awareness") awareness.receive(message);
    return message ?? ofHocuspocus;
  });
  return decoded.some((message) => message !== undefined && message.kind !== "unknown");
}

function checkMessage(message: YMessage, bytes: Uint8Array): void {
  assert(heldSize(message, bytes) <= bytes.byteLength, "a message holds no more than its bytes");
  if (message.kind === "awareness") checkStates(message);
  if (message.kind !== "update") return;
  const again = message.isAnswer ? encodeSyncAnswer(message.update) : encodeUpdate(message.update);
  assertEqual(decodeYMessage(again), { ...message, update: message.update }, "an update decodes to what was encoded");
}

type AwarenessMessage = YMessage & { readonly kind: "awareness" };

function checkStates(message: AwarenessMessage): void {
  const states = statesOf(message);
  if (states === undefined) return;
  const again = decodeYMessage(encodeAwareness(states));
  assert(again?.kind === "awareness" && again.first === states[0]?.client, "encoded states decode");
  assertEqual(statesOf(again), states, "states decode to what was encoded");
}

/** Undefined: a state is no text. The bridge closes the client when it reads this state. */
function statesOf({ bytes }: AwarenessMessage): YState[] | undefined {
  try {
    const states: YState[] = [];
    visitStates(bytes, (client, clock, json) => states.push({ client, clock, json: readJson(bytes, json) }));
    return states;
  } catch {
    return undefined;
  }
}

/** A room in which the client sees its own state as another's. */
class ClientAwareness {
  readonly #states = new Map<number, Record<string, unknown>>();
  readonly #awareness: YAwareness;

  constructor() {
    const setLocalState = (state: unknown): void => {
      if (typeof state === "object" && state !== null) this.#states.set(OTHER, state as Record<string, unknown>);
      else this.#states.delete(OTHER);
    };
    this.#awareness = new YAwareness({ clientID: OWN, states: this.#states, setLocalState } as never, undefined, new FakeClock(0));
  }

  receive(message: AwarenessMessage): void {
    if (statesOf(message) === undefined) return;
    this.#awareness.receiveStates(message.bytes);
    const shown = this.#awareness.statesOf([OTHER, OTHER + 1]);
    for (const { clock, json } of shown) {
      assert(Number.isSafeInteger(clock) && clock >= 0, "an awareness clock is a number that clients can read");
      JSON.parse(json);
    }
    assert(decodeYMessage(encodeAwareness(shown)) !== undefined, "a client can read every state");
  }
}

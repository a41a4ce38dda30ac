/** The presence that one connection has received, and its differences from the true presence. Values are compared as strings. */

import type { ClientId } from "../../shared/ids.ts";
import { decodePoint, decodeRectangle } from "../../shared/wire/positions.ts";
import { CURSOR, decodeDelta, type ParticipantEntry, VIEWPORT } from "../../shared/wire/presence.ts";

type Fields = ReadonlyMap<string, string>;

export class SimOnlooker {
  readonly client: ClientId;
  readonly topics = new Set<string>();
  #received = new Map<number, { participant: ParticipantEntry; fields: Map<string, string> }>();
  #isWelcome = false;

  constructor(client: ClientId) {
    this.client = client;
  }

  welcome(snapshot: Uint8Array): void {
    this.#isWelcome = true;
    this.receiveDelta(snapshot);
  }

  receiveDelta(delta: Uint8Array): void {
    const { snapshot, present, gone, states } = decodeDelta(delta)!;
    if (snapshot) this.#received = new Map();
    for (const number of gone) this.#received.delete(number);
    for (const participant of present)
      this.#received.set(participant.number, { participant, fields: this.#received.get(participant.number)?.fields ?? new Map() });
    for (const { number, fields } of states) {
      for (const { name, value } of fields) {
        if (value.byteLength === 0) this.#received.get(number)?.fields.delete(name);
        else this.#received.get(number)?.fields.set(name, textOf(value));
      }
    }
  }

  /** Compares the received presence of all others with the true presence. `own`: the fields that this client shows, with its viewport. */
  wrongAbout(here: readonly { readonly client: ClientId; readonly shows: Fields }[], own: Fields): string[] {
    if (!this.#isWelcome) return [`${this.client} never received a snapshot`];
    const shown = new Map([...this.#received.values()].map(({ participant, fields }) => [participant.client, fields]));
    const wrong = [...shown.keys()]
      .filter((other) => !here.some(({ client }) => client === other))
      .map((ghost) => `${this.client} sees ${ghost}, who is gone`);
    for (const { client, shows } of here) {
      const fields = shown.get(client);
      if (fields === undefined) wrong.push(`${this.client} does not see ${client}`);
      else if (client !== this.client && !matches(own, fields, shows))
        wrong.push(`${this.client}, looking at ${own.get(VIEWPORT)}, sees ${client} with ${describe(fields)}, not ${describe(shows)}`);
    }
    return wrong;
  }
}

export function textOf(value: Uint8Array): string {
  return value.join(" ");
}

export function bytesOf(text: string): Uint8Array {
  return text === "" ? new Uint8Array(0) : Uint8Array.from(text.split(" "), Number);
}

/** All fields except the cursor must be equal. The cursor must be equal if its old or new place is in the viewport. */
function matches(viewer: Fields, seen: Fields, real: Fields): boolean {
  const [seenCursor, realCursor] = [seen.get(CURSOR), real.get(CURSOR)];
  return (
    describe(new Map([...seen, [CURSOR, ""]])) === describe(new Map([...real, [CURSOR, ""]])) &&
    (seenCursor === realCursor || !(isInView(viewer, seenCursor) || isInView(viewer, realCursor)))
  );
}

function isInView(viewer: Fields, cursor: string | undefined): boolean {
  const view = decodeRectangle(bytesOf(viewer.get(VIEWPORT) ?? ""));
  const point = decodePoint(bytesOf(cursor ?? ""));
  if (view === undefined || point === undefined) return view === undefined;
  return point.x >= view.x && point.x <= view.x + view.width && point.y >= view.y && point.y <= view.y + view.height;
}

const describe = (fields: Fields): string => JSON.stringify([...fields].sort());

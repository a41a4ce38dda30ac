/**
 * A user in a room, for tests: the SDK's room connection, a document that applies every edit, and a check of the
 * delivered seqs. Edits are given as bytes, so that recorded edits are sent unchanged.
 */

import * as Y from "yjs";

import { RoomConnection } from "../../client/index.ts";
import type { Problem, Refusal } from "../../client/room/problems.ts";
import { yjsEdits } from "../../client/yjs/yjs-edits.ts";
import type { SystemCluster, RunningGateway } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { TRACE_TEXT } from "./traces.ts";

export class Person {
  readonly name: string;
  readonly room: RoomConnection;
  readonly doc = new Y.Doc();
  /** Violations of the order of delivery. Must stay empty. */
  readonly disorders: string[] = [];
  readonly errors: (Refusal | Problem)[] = [];
  #seq = 0;
  #tentativeSeen = 0;

  private constructor(name: string, room: RoomConnection) {
    this.name = name;
    this.room = room;
    room.on("edits", (edits) => {
      this.doc.transact(() => {
        for (const { seq, payload } of edits) {
          if (seq !== this.#seq + 1) this.disorders.push(`${name} was given seq ${seq} after ${this.#seq}`);
          this.#seq = seq;
          Y.applyUpdate(this.doc, payload);
        }
      });
    });
    room.on("tentative", (edits) => {
      this.#tentativeSeen += edits.length;
      for (const { payload } of edits) Y.applyUpdate(this.doc, payload);
    });
    room.on("snapshot", ({ position, payload }) => {
      this.#seq = position.seq;
      Y.applyUpdate(this.doc, payload);
    });
    room.on("refused", (refusal) => this.errors.push(refusal));
    room.on("error", (problem) => this.errors.push(problem));
  }

  /** `merging`: waiting edits may be merged, as the provider does it. */
  static async enter(
    cluster: Pick<SystemCluster, "token">,
    gateway: Pick<RunningGateway, "url">,
    room: string,
    name: string,
    options: { merging: boolean },
  ): Promise<Person> {
    const token = await cluster.token(room, name);
    return new Person(name, new RoomConnection({ url: gateway.url, room, token, format: yjsEdits, mergeUnsent: options.merging }));
  }

  get text(): string {
    return this.doc.getText(TRACE_TEXT).toString();
  }

  /** Number of edits shown before the log had them. */
  get tentativeSeen(): number {
    return this.#tentativeSeen;
  }

  type(edit: Uint8Array): void {
    Y.applyUpdate(this.doc, edit);
    this.room.send(edit);
  }

  untilSaved(msMax?: number): Promise<void> {
    return eventually(
      `${this.name} has everything saved (${this.room.unsavedEdits} unsaved, ${this.room.status})`,
      () => this.room.saved,
      msMax,
    );
  }

  untilText(text: string, msMax?: number): Promise<void> {
    return eventually(
      `${this.name}'s text is the expected one (at seq ${this.room.seq})`,
      () => this.room.synced && this.text === text,
      msMax,
    );
  }

  leave(): void {
    this.room.destroy();
  }
}

/** An edit of an author who has seen no other edit. Yjs decides its place in the text. */
export function insertion(words: string): Uint8Array {
  const doc = new Y.Doc();
  doc.getText(TRACE_TEXT).insert(0, words);
  return Y.encodeStateAsUpdate(doc);
}

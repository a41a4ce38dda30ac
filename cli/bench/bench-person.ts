/** One person of `coroom bench`: an SDK client with its own connection and user, as any application has. */

import * as Y from "yjs";

import { type ClientId, RoomConnection, type Problem, type Point, type Refusal, type SocketClose, type Token } from "../../client/index.ts";
import { CursorMoves, SIDE } from "./cursor-moves.ts";
import { keystroke, type Keystrokes, readKeystrokes } from "./keystroke.ts";

type BenchPersonListener = {
  /** The person has the room. `ms`: since the first attempt, or since the connection was lost. */
  here(ms: number, isFirst: boolean): void;
  edits(edits: readonly Keystrokes[]): void;
  /** `counts`: edits in the snapshot, by writer. */
  snapshot(counts: ReadonlyMap<number, number>): void;
  rolledBack(): void;
  pointed(by: ClientId, to: Point): void;
  refused(refused: Problem | Refusal): void;
  closed(close: SocketClose): void;
};

export class BenchPerson {
  readonly place: number;
  readonly moves = new CursorMoves();
  readonly #room: RoomConnection;
  readonly #listener: BenchPersonListener;
  /** When the person began to try to be in the room. Undefined: it is there. */
  #missingSince: number | undefined = performance.now();
  #hasJoined = false;

  constructor(
    options: { readonly url: string; readonly room: string; readonly token: Token; readonly place: number },
    listener: BenchPersonListener,
  ) {
    this.place = options.place;
    this.#listener = listener;
    this.#room = new RoomConnection({ url: options.url, room: options.room, token: options.token, mergeUnsent: false, connect: false });
    this.#listen();
    this.#room.connect();
  }

  get client(): ClientId | undefined {
    return this.#room.client;
  }

  get hasJoined(): boolean {
    return this.#hasJoined;
  }

  get isHere(): boolean {
    return this.#missingSince === undefined;
  }

  /** `edit`: the number of this person's edit, from 1. */
  type(edit: number): void {
    this.#room.send(keystroke(this.place + 1, edit));
  }

  move(): void {
    this.#room.presence.set({ cursor: this.moves.move(performance.now()), viewport: { x: 0, y: 0, width: SIDE, height: SIDE } });
  }

  leave(): void {
    this.#room.destroy();
  }

  #listen(): void {
    const room = this.#room;
    const listener = this.#listener;
    const look = (): void => this.#receiveIsHere(room.synced && (room.status === "connected" || room.status === "degraded"));
    room.on("status", look);
    room.on("synced", look);
    room.on("edits", (edits) => listener.edits(edits.flatMap(({ payload }) => readKeystrokes(payload))));
    room.on("snapshot", ({ payload }) => listener.snapshot(Y.decodeStateVector(Y.encodeStateVectorFromUpdate(payload))));
    room.on("rolled-back", () => listener.rolledBack());
    room.on("presence", ({ entered, changed }) => {
      for (const client of [...entered, ...changed]) {
        const cursor = client === room.client ? undefined : room.participants.get(client)?.cursor;
        if (cursor !== undefined) listener.pointed(client, cursor);
      }
    });
    room.on("refused", (refusal) => listener.refused(refusal));
    room.on("error", (problem) => listener.refused(problem));
    room.on("connection-close", (close) => close !== null && listener.closed(close));
  }

  #receiveIsHere(isHere: boolean): void {
    if (isHere === this.isHere) return;
    const now = performance.now();
    const since = this.#missingSince;
    this.#missingSince = isHere ? undefined : now;
    if (since === undefined) return;
    const isFirst = !this.#hasJoined;
    this.#hasJoined = true;
    this.#listener.here(now - since, isFirst);
  }
}

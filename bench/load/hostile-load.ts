/**
 * The load of hostile rooms: clients without a document, so nothing checks their edits before the log. Each client also
 * reads its room's text over HTTP, because a read makes the document service merge what it has not merged yet.
 */

import { RoomConnection } from "../../client/main.ts";
import { paced } from "../../cli/bench/paced.ts";
import { type HostileKind, hostileEdits } from "../hostile-edits.ts";
import { until } from "./until.ts";
import { serveCalls } from "./worker.ts";

export type HostileLoad = typeof functions;
export type HostileSeat = { readonly gateway: string; readonly room: string; readonly token: string };
type Attack = { readonly kind: HostileKind; readonly ms: number; readonly editsPerSecond: number; readonly readsPerSecond: number };
/** `stored`: edits that the log acknowledged by the end. */
type AttackFigures = { readonly stored: number; readonly cpuSeconds: number };

const OPEN_MS_MAX = 60_000;

let attackers: Attacker[] = [];

const functions = {
  open: async (seats: readonly HostileSeat[]): Promise<void> => {
    attackers = seats.map((seat) => new Attacker(seat));
    await until("the attackers are in their rooms", () => attackers.every(({ synced }) => synced), OPEN_MS_MAX);
  },
  /** Each attacker sends and reads at these rates. */
  attack: async ({ kind, ms, editsPerSecond, readsPerSecond }: Attack): Promise<AttackFigures> => {
    const edits = hostileEdits(kind, Math.ceil((editsPerSecond * ms) / 1000));
    const ended = new AbortController();
    const before = process.cpuUsage();
    const inTurn = (turn: number): readonly [attacker: Attacker, round: number] => [
      attackers[turn % attackers.length]!,
      Math.floor(turn / attackers.length),
    ];
    await Promise.all([
      paced(attackers.length * editsPerSecond, ms, (turn) => {
        const [attacker, round] = inTurn(turn);
        if (kind === "http") void attacker.post(edits[round]!, ended.signal);
        else attacker.send(edits[round]!);
      }),
      paced(attackers.length * readsPerSecond, ms, (turn) => void inTurn(turn)[0].read(ended.signal)),
    ]);
    ended.abort();
    const { user, system } = process.cpuUsage(before);
    return { stored: attackers.reduce((sum, { stored }) => sum + stored, 0), cpuSeconds: (user + system) / 1e6 };
  },
  close: (): void => {
    for (const attacker of attackers) attacker.leave();
    attackers = [];
  },
};

class Attacker {
  readonly #seat: HostileSeat;
  readonly #connection: RoomConnection;

  constructor(seat: HostileSeat) {
    this.#seat = seat;
    this.#connection = new RoomConnection({ url: seat.gateway, room: seat.room, token: seat.token });
    this.#connection.on("refused", (refusal) => {
      throw new Error(`${seat.room}: the attacker was refused, so nothing is measured: ${JSON.stringify(refusal)}`);
    });
  }

  get synced(): boolean {
    return this.#connection.synced;
  }

  get stored(): number {
    return this.#connection.seq;
  }

  send(edit: Uint8Array): void {
    this.#connection.send(edit);
  }

  post(edit: Uint8Array, signal: AbortSignal): Promise<void> {
    return this.#ask("edits", { method: "POST", body: Buffer.from(edit), signal });
  }

  read(signal: AbortSignal): Promise<void> {
    return this.#ask("text", { signal });
  }

  /** Any answer is right: the room's edits may be refused, be no document, or take too long. */
  async #ask(place: string, request: RequestInit): Promise<void> {
    const { gateway, room, token } = this.#seat;
    const headers = { "authorization": `Bearer ${token}`, "content-type": "application/octet-stream" };
    try {
      const answer = await fetch(`${gateway.replace("ws:", "http:")}/v1/rooms/${room}/${place}`, { ...request, headers });
      await answer.arrayBuffer();
    } catch (error) {
      if (!request.signal!.aborted) throw error;
    }
  }

  leave(): void {
    this.#connection.destroy();
  }
}

serveCalls(functions);

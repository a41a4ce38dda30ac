/**
 * A hostile client with a valid token. It joins a room with tabs, and sends frames of all types with random fields: out
 * of order, damaged, in the name of others, and repeats of frames that it received. Its own edits are empty, so the
 * judge recognizes them.
 */

import type { Prng } from "../../shared/collections/prng.ts";
import { type ClientKey, type Epoch, roomOf, type RoomKey, type Seq, tenantOf, type UserId } from "../../shared/ids.ts";
import { BOARD_ROLES, BOARD_WINDOWS, type BoardRole, type BoardWindow } from "../../shared/wire/boards.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import type { ClientFrame, TentativeEdit } from "../../shared/wire/frames.ts";
import { clientIdOf } from "../../gateway/io/client-ids.ts";
import type { Cluster } from "./cluster.ts";
import { pick } from "./pick.ts";
import type { SimProcess } from "./sim-process.ts";
import type { SimConnection } from "./sim-sockets.ts";
import type { Strike } from "./strike.ts";

const SEND_EACH_MS_MAX = 25;
const SEEN_MAX = 50;
/** Share of frames that are sent undamaged. */
const INTACT_CHANCE = 0.93;
const FORGED_MAC = new Uint8Array(16);
const NOTHING = new Uint8Array(0);

/** A generator for each frame type: the compiler reports a missing type. */
type Drawn = { readonly [Type in ClientFrame["type"]]: () => Extract<ClientFrame, { type: Type }> };

export const sendAnything: Strike = (cluster, { whom, how, forMs }) => {
  const stranger = new Stranger(cluster, cluster.tab(whom).room, cluster.world.chance(`stranger ${how}`));
  cluster.later(forMs, () => stranger.leave());
  return () => stranger.sentInRoom > 0;
};

class Stranger {
  /** Count of frames since it first joined the room. */
  sentInRoom = 0;
  readonly #cluster: Cluster;
  readonly #room: RoomKey;
  readonly #prng: Prng;
  readonly #process: SimProcess;
  readonly #user: UserId;
  readonly #key = "stranger-key-aaaa" as ClientKey;
  /** Received edits of others, and forged next edits of the same writers. */
  readonly #seen: TentativeEdit[] = [];
  #connection: SimConnection | undefined;
  #channel = 1;
  #counter = 1;
  #isGone = false;

  constructor(cluster: Cluster, room: RoomKey, prng: Prng) {
    this.#cluster = cluster;
    this.#room = room;
    this.#prng = prng;
    this.#user = `stranger-${prng.below(1_000_000)}` as UserId;
    this.#process = cluster.world.process(this.#user);
    this.#go();
  }

  leave(): void {
    this.#isGone = true;
    this.#connection?.close();
  }

  #go(): void {
    if (this.#isGone) return;
    if (this.#connection?.isOpen === true) this.#send(this.#prng.chance(0.05) ? this.#drawn().hello() : this.#draw());
    else this.#connect();
    this.#process.clock.after(1 + this.#prng.below(SEND_EACH_MS_MAX), () => this.#go());
  }

  #connect(): void {
    const connection = pick(this.#cluster.internet.listeners(), this.#prng.unit())?.connect(this.#process, {
      opened: () => {
        connection?.send(encodeFrame({ type: "hello", version: 1, token: this.#user, agent: "stranger" }));
        connection?.send(encodeFrame(this.#join()));
      },
      received: (bytes) => this.#receive(bytes),
      closed: () => {},
    });
    this.#connection = connection;
  }

  #receive(bytes: Uint8Array): void {
    const frame = decodeFrame(bytes);
    if (frame?.type === "joined") {
      this.#channel = frame.channel;
      this.sentInRoom = Math.max(1, this.sentInRoom);
    } else if (frame?.type === "ack" || frame?.type === "acked-through") this.#counter = frame.counter + 1;
    else if (frame?.type === "nack") this.#counter = frame.expected;
    else if (frame?.type === "tentative") this.#see(frame.edit);
    else if (frame?.type === "committed") {
      const { client, counter } = frame.edits.edits.at(-1)!;
      const next = { user: this.#user, client, counter: counter + 1, ackedThrough: counter, parentSeq: 0 as Seq };
      this.#see({ ...next, epoch: frame.edits.epoch, mac: FORGED_MAC, payload: NOTHING });
    }
  }

  #see(edit: TentativeEdit): void {
    if (this.#seen.length < SEEN_MAX) this.#seen.push(edit);
    else this.#seen[this.#prng.below(SEEN_MAX)] = edit;
  }

  #send(frame: ClientFrame): void {
    const bytes = encodeFrame(frame);
    if (this.#prng.chance(1 - INTACT_CHANCE)) bytes[this.#prng.below(bytes.length)]! ^= 1 + this.#prng.below(255);
    this.#connection?.send(bytes);
    if (this.sentInRoom > 0) this.sentInRoom += 1;
  }

  #draw(): ClientFrame {
    const drawn = this.#drawn();
    const types = Object.keys(drawn) as ClientFrame["type"][];
    return drawn[types[this.#prng.below(types.length)]!]();
  }

  #join(): Extract<ClientFrame, { type: "join" }> {
    const position = this.#prng.chance(0.5) ? { epoch: 0 as Epoch, seq: 0 as Seq } : { epoch: 1 as Epoch, seq: this.#number(90) as Seq };
    return { type: "join", request: this.#number(9), room: roomOf(this.#room), clientKey: this.#key, position };
  }

  #number(below: number): number {
    return 1 + this.#prng.below(below);
  }

  #drawn(): Drawn {
    const prng = this.#prng;
    const channel = prng.chance(0.8) ? this.#channel : prng.below(9);
    const among = <Name extends string>(names: Readonly<Record<Name, number>>): Name => pick(Object.keys(names) as Name[], prng.unit())!;
    return {
      "hello": () => ({ type: "hello", version: prng.below(3), token: this.#user, agent: "stranger" }),
      "join": () => this.#join(),
      "leave": () => ({ type: "leave", channel }),
      "part": () => ({ type: "part", flags: { last: prng.chance(0.5) }, payload: Uint8Array.of(prng.below(256)) }),
      "edit": () => {
        const counter = prng.chance(0.6) ? this.#counter++ : this.#number(50);
        return { type: "edit", channel, counter, ackedThrough: prng.below(counter), parentSeq: prng.below(90) as Seq, payload: NOTHING };
      },
      "resubmit": () => {
        const edit: TentativeEdit = pick(this.#seen, prng.unit()) ?? {
          user: this.#user,
          client: clientIdOf(tenantOf(this.#room), this.#user, this.#key),
          epoch: 1 as Epoch,
          counter: 1,
          ackedThrough: 0,
          parentSeq: 0 as Seq,
          mac: FORGED_MAC,
          payload: NOTHING,
        };
        return { type: "resubmit", channel, edit };
      },
      "replay-request": () => ({ type: "replay-request", channel, after: prng.below(90) as Seq, through: this.#number(200) as Seq }),
      "ping": () => ({ type: "ping", nonce: prng.below(1_000) }),
      "renew": () => ({ type: "renew", token: this.#user }),
      "presence": () => ({
        type: "presence",
        channel,
        fields: [{ name: "typed", value: Uint8Array.of(prng.below(256), prng.below(256)) }],
      }),
      "watch-board": () => ({
        type: "watch-board",
        channel,
        role: among<BoardRole>(BOARD_ROLES),
        window: among<BoardWindow>(BOARD_WINDOWS),
        shown: prng.below(20),
      }),
    };
  }
}

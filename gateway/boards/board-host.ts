/** Carries out what `boards.ts` decides. */

import { assertNever } from "../../shared/assert.ts";
import type { BoardNews } from "../../shared/bus/board-messages.ts";
import type { Clock } from "../../shared/clock.ts";
import type { RoomKey, UserId } from "../../shared/ids.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import type { BoardEffect, BoardRequest, Boards } from "./boards.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { BoardBus, ConnectionId, Sockets, Topics } from "../ports.ts";
import { UntoldNames } from "./untold-names.ts";

export type BoardHostPorts = { readonly sockets: Pick<Sockets, "send">; readonly topics: Topics; readonly boardBus: BoardBus };

const TICK_MS = 1_000;

export class BoardHost {
  readonly #boards: Boards;
  readonly #ports: BoardHostPorts;
  readonly #deps: { readonly clock: Clock; readonly metrics: GatewayMetrics };
  readonly #names: UntoldNames;
  #stopTicking: () => void = () => {};

  constructor(boards: Boards, ports: BoardHostPorts, deps: { clock: Clock; metrics: GatewayMetrics }) {
    this.#boards = boards;
    this.#ports = ports;
    this.#deps = deps;
    this.#names = new UntoldNames(deps.clock, (names) => ports.boardBus.tellNames(names));
  }

  start(): void {
    const { clock, metrics } = this.#deps;
    this.#stopTicking = clock.after(TICK_MS, () => {
      this.#carryOut(this.#boards.receiveTick(this.#ports.boardBus.leaderboards(), clock.now()));
      const { boards, watchers } = this.#boards.size;
      metrics.boards.set(boards);
      metrics.boardWatchers.set(watchers);
      this.start();
    });
  }

  stop(): void {
    this.#stopTicking();
    this.#names.tellAll();
  }

  receiveRequest(request: BoardRequest): void {
    this.#carryOut(this.#boards.receiveRequest(request, this.#deps.clock.now()));
  }

  receiveLeft(connection: ConnectionId, room: RoomKey): void {
    this.#carryOut(this.#boards.receiveLeft(connection, room));
  }

  receiveGone(connection: ConnectionId): void {
    this.#carryOut(this.#boards.receiveGone(connection));
  }

  /** Somebody is let in who may come to stand on the room's boards. A name that is the user's id is told too: there may have been another before. */
  receiveWriter(room: RoomKey, user: UserId, name: string): void {
    if (name !== "") this.#names.add({ room, user, name });
  }

  receiveNews(news: BoardNews): void {
    this.#carryOut(this.#boards.receiveNews(news));
  }

  receiveLineFound(): void {
    this.#carryOut(this.#boards.receiveLineFound(this.#deps.clock.now()));
  }

  #carryOut(effects: readonly BoardEffect[]): void {
    const { sockets, topics, boardBus } = this.#ports;
    const { boardFrames } = this.#deps.metrics;
    for (const effect of effects) {
      switch (effect.kind) {
        case "follow":
          boardBus.follow(effect.room);
          break;
        case "unfollow":
          boardBus.unfollow(effect.room);
          break;
        case "watch":
          boardBus.watch(effect.watch);
          break;
        case "tell-name":
          this.#names.add(effect.name);
          break;
        case "listen":
          topics.listenTo(effect.connection, effect.topic);
          break;
        case "unlisten":
          topics.unlistenTo(effect.connection, effect.topic);
          break;
        case "send":
          boardFrames.inc({ frame: effect.frame.type });
          sockets.send(effect.to, encodeFrame(effect.frame));
          break;
        case "publish":
          boardFrames.inc({ frame: "published" });
          topics.publishTo(effect.topic, encodeFrame(effect.frame));
          break;
        default:
          assertNever(effect);
      }
    }
  }
}

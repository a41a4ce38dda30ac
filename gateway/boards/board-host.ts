/** Carries out what `boards.ts` decides, and publishes the display names of members for boards. */

import { assertNever } from "../../shared/assert.ts";
import { type BoardUpdate, DISPLAY_NAMES_MAX, type DisplayName } from "../../shared/bus/board-messages.ts";
import type { RoomKey, UserId } from "../../shared/ids.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { every } from "../../shared/time/every.ts";
import { encodeFrame } from "../../shared/wire/codec.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { BoardBus, ConnectionId, Sockets, Topics } from "../ports.ts";
import type { BoardEffect, BoardRequest, GatewayBoards } from "./boards.ts";

type BoardHostPorts = { readonly sockets: Pick<Sockets, "send">; readonly topics: Topics; readonly boardBus: BoardBus };

const TICK_MS = 1_000;

export class BoardHost {
  readonly #boards: GatewayBoards;
  readonly #ports: BoardHostPorts;
  readonly #deps: { readonly clock: Clock; readonly metrics: GatewayMetrics };
  readonly #names: UnpublishedNames;
  #stopTicking: () => void = () => {};

  constructor(boards: GatewayBoards, ports: BoardHostPorts, deps: { clock: Clock; metrics: GatewayMetrics }) {
    this.#boards = boards;
    this.#ports = ports;
    this.#deps = deps;
    this.#names = new UnpublishedNames(deps.clock, (names) => ports.boardBus.publishNames(names));
  }

  start(): void {
    const { clock, metrics } = this.#deps;
    this.#stopTicking = every(clock, TICK_MS, () => {
      this.#carryOut(this.#boards.receiveTick(this.#ports.boardBus.leaderboards(), clock.now()));
      const { boards, watchers } = this.#boards.size;
      metrics.boards.set(boards);
      metrics.boardWatchers.set(watchers);
    });
  }

  stop(): void {
    this.#stopTicking();
    this.#names.publishAll();
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

  /**
   * Call when a user who may score joins a room. A name equal to the user id is published too: the board may show an
   * older name.
   */
  receiveWriter(room: RoomKey, user: UserId, name: string): void {
    if (name !== "") this.#names.add({ room, user, name });
  }

  receiveUpdate(update: BoardUpdate): void {
    this.#carryOut(this.#boards.receiveUpdate(update, this.#deps.clock.now()));
  }

  receiveBackboneFound(): void {
    this.#carryOut(this.#boards.receiveBackboneFound(this.#deps.clock.now()));
  }

  #carryOut(effects: readonly BoardEffect[]): void {
    const { sockets, topics, boardBus } = this.#ports;
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
        case "publish-name":
          this.#names.add(effect.name);
          break;
        case "listen":
          topics.listenTo(effect.connection, effect.topic);
          break;
        case "unlisten":
          topics.unlistenTo(effect.connection, effect.topic);
          break;
        case "send":
          sockets.send(effect.to, encodeFrame(effect.frame));
          break;
        case "publish":
          topics.publishTo(effect.topic, encodeFrame(effect.frame));
          break;
        case "delayed":
          this.#deps.metrics.limitsReached.inc({ limit: "tenant-boards" });
          break;
        default:
          assertNever(effect);
      }
    }
  }
}

/** Shorter than the time in which anybody can score enough to appear on a board. */
const GATHER_MS = 100;

/**
 * Publishes display names in batches, shortly after users join. When whole rooms reconnect, one NATS message per name
 * would cost more than the rest of the join.
 */
export class UnpublishedNames {
  readonly #clock: Pick<Clock, "after">;
  readonly #publish: (names: readonly DisplayName[]) => void;
  /** By room and user, so that only the latest name of a user is published. */
  readonly #unpublished = new Map<string, DisplayName>();
  #callOff: () => void = () => {};

  /** `publish` receives 1 to `DISPLAY_NAMES_MAX` names. */
  constructor(clock: Pick<Clock, "after">, publish: (names: readonly DisplayName[]) => void) {
    this.#clock = clock;
    this.#publish = publish;
  }

  add(name: DisplayName): void {
    if (this.#unpublished.size === 0) this.#callOff = this.#clock.after(GATHER_MS, () => this.publishAll());
    this.#unpublished.set(`${name.room} ${name.user}`, name);
    if (this.#unpublished.size === DISPLAY_NAMES_MAX) this.publishAll();
  }

  publishAll(): void {
    this.#callOff();
    const names = [...this.#unpublished.values()];
    this.#unpublished.clear();
    if (names.length > 0) this.#publish(names);
  }
}

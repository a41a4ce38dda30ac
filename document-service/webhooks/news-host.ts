/**
 * Tells the queue of webhooks what happens to documents: changes once they are quiet, snapshots as they are saved. A
 * change is in the queue before a checkpoint covers it; until then a restarted service reads its edits again. So no
 * change is lost, and one may be told twice.
 */

import type { Clock } from "../../shared/clock.ts";
import { type Position, type RoomKey, roomOf, tenantOf } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { unlessMistake } from "../../shared/pause.ts";
import { wantsEventsOf, type WebhookEndpoint } from "../../shared/webhook-endpoints.ts";
import { ChangeNews, type ChangeNewsOptions } from "./change-news.ts";
import type { News, WebhookQueue } from "../ports.ts";

export type NewsOptions = ChangeNewsOptions & { readonly webhookUrls: readonly WebhookEndpoint[] };

const TICK_MS = 250;

export class NewsHost implements News {
  readonly #queue: Pick<WebhookQueue, "add">;
  readonly #options: NewsOptions;
  readonly #deps: { readonly clock: Clock; readonly log: Log };
  /** Of rooms with a change that is still to be told. */
  readonly #rooms = new Map<RoomKey, ChangeNews>();
  #stopTicking: () => void = () => {};

  constructor(queue: Pick<WebhookQueue, "add">, options: NewsOptions, deps: { clock: Clock; log: Log }) {
    this.#queue = queue;
    this.#options = options;
    this.#deps = deps;
    this.#tickLater();
  }

  stop(): void {
    this.#stopTicking();
  }

  receiveEdits(room: RoomKey, position: Position, edits: number): void {
    if (edits <= 0 || !wantsEventsOf(tenantOf(room), this.#options.webhookUrls)) return;
    const news = this.#rooms.get(room) ?? new ChangeNews(this.#options);
    this.#rooms.set(room, news);
    news.receiveEdits(position, edits, this.#deps.clock.now());
  }

  async settle(room: RoomKey): Promise<void> {
    const news = this.#rooms.get(room);
    const change = news?.take();
    if (news === undefined || change === undefined) return;
    const { epoch, seq, edits } = change;
    try {
      await this.#queue.add(`changed-${room}-${epoch}-${seq}`, { type: "document.changed", ...this.#placeOf(room), epoch, seq, edits });
    } catch (cause) {
      news.putBack(change, this.#deps.clock.now());
      throw cause;
    }
    if (!news.isPending) this.#rooms.delete(room);
  }

  async receiveSnapshot(room: RoomKey, { epoch, seq }: Position, bytes: number): Promise<void> {
    if (!wantsEventsOf(tenantOf(room), this.#options.webhookUrls)) return;
    try {
      await this.#queue.add(`snapshot-${room}-${epoch}-${seq}`, { type: "document.snapshot", ...this.#placeOf(room), epoch, seq, bytes });
    } catch (cause) {
      unlessMistake(cause); // The snapshot stands: the next one is told again.
      this.#deps.log.warn({ room, cause }, "a snapshot was not queued for webhooks; nobody is told of it");
    }
  }

  async receiveDeleted(room: RoomKey): Promise<void> {
    this.#rooms.delete(room); // Nobody can read what has changed.
    if (wantsEventsOf(tenantOf(room), this.#options.webhookUrls)) await this.#queue.add(`deleted-${room}`, { type: "room.deleted", ...this.#placeOf(room) });
  }

  #placeOf(room: RoomKey): { tenant: string; room: string; at: number } {
    return { tenant: tenantOf(room), room: roomOf(room), at: this.#deps.clock.wallNow() };
  }

  #tickLater(): void {
    this.#stopTicking = this.#deps.clock.after(TICK_MS, () => {
      this.#tickLater();
      const now = this.#deps.clock.now();
      for (const [room, news] of this.#rooms) if (news.isDue(now)) void this.#tell(room);
    });
  }

  /** One that fails is due again after a while, and settled at the latest before a checkpoint covers it. */
  async #tell(room: RoomKey): Promise<void> {
    try {
      await this.settle(room);
    } catch (cause) {
      unlessMistake(cause);
      this.#deps.log.warn({ room, cause }, "a change was not queued for webhooks; trying again");
    }
  }
}

/** Where nobody wants to hear anything. */
export const NO_NEWS: News = { receiveEdits: () => {}, settle: () => Promise.resolve(), receiveSnapshot: () => Promise.resolve(), receiveDeleted: () => Promise.resolve() };

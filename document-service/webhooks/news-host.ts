/**
 * Tells the queue of webhooks what happens to documents: changes once they are quiet, snapshots as they are saved. A
 * change is in the queue before a checkpoint covers it; until then a restarted service reads its edits again. So no
 * change is lost, and one may be told twice.
 */

import type { Clock } from "../../shared/clock.ts";
import { type Position, type RoomKey, roomOf, tenantOf } from "../../shared/ids.ts";
import { inTurn } from "../../shared/in-turn.ts";
import type { Log } from "../../shared/log.ts";
import { unlessMistake } from "../../shared/pause.ts";
import { wantsEventsOf, type WebhookEndpoint } from "../../shared/webhook-endpoints.ts";
import { type Change, ChangeNews, type ChangeNewsOptions } from "./change-news.ts";
import type { News, WebhookQueue } from "../ports.ts";

export type NewsOptions = ChangeNewsOptions & { readonly webhookUrls: readonly WebhookEndpoint[] };

/** `settle`: one at a time, so that whoever waits for it knows what became of the change that was on its way. */
type RoomNews = { readonly news: ChangeNews; readonly settle: () => Promise<void> };

const TICK_MS = 250;

export class NewsHost implements News {
  readonly #queue: Pick<WebhookQueue, "add">;
  readonly #options: NewsOptions;
  readonly #deps: { readonly clock: Clock; readonly log: Log };
  /** Of rooms with a change that is still to be told, or on its way into the queue. */
  readonly #rooms = new Map<RoomKey, RoomNews>();
  /** Of rooms whose change was due: no more wait for a queue that does not answer. */
  readonly #settling = new Set<RoomKey>();
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
    const { news } = this.#rooms.get(room) ?? this.#begin(room);
    news.receiveEdits(position, edits, this.#deps.clock.now());
  }

  async settle(room: RoomKey): Promise<void> {
    await this.#rooms.get(room)?.settle();
  }

  #begin(room: RoomKey): RoomNews {
    const news = new ChangeNews(this.#options);
    const begun: RoomNews = {
      news,
      settle: inTurn(1, async () => {
        const isForgotten = () => this.#rooms.get(room) !== begun;
        const change = isForgotten() ? undefined : news.take();
        if (change === undefined) return;
        await this.#tell(room, change, news);
        if (!news.isPending && !isForgotten()) this.#rooms.delete(room);
      }),
    };
    this.#rooms.set(room, begun);
    return begun;
  }

  async #tell(room: RoomKey, change: Change, news: ChangeNews): Promise<void> {
    const { epoch, seq, edits } = change;
    try {
      await this.#queue.add(`changed-${room}-${epoch}-${seq}`, { type: "document.changed", ...this.#placeOf(room), epoch, seq, edits });
    } catch (cause) {
      news.putBack(change, this.#deps.clock.now());
      throw cause;
    }
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
    if (wantsEventsOf(tenantOf(room), this.#options.webhookUrls)) {
      await this.#queue.add(`deleted-${room}`, { type: "room.deleted", ...this.#placeOf(room) });
    }
  }

  #placeOf(room: RoomKey): { tenant: string; room: string; at: number } {
    return { tenant: tenantOf(room), room: roomOf(room), at: this.#deps.clock.wallNow() };
  }

  #tickLater(): void {
    this.#stopTicking = this.#deps.clock.after(TICK_MS, () => {
      this.#tickLater();
      const now = this.#deps.clock.now();
      for (const [room, { news }] of this.#rooms) if (news.isDue(now) && !this.#settling.has(room)) void this.#settleDue(room);
    });
  }

  /** One that fails is due again after a while, and settled at the latest before a checkpoint covers it. */
  async #settleDue(room: RoomKey): Promise<void> {
    this.#settling.add(room);
    try {
      await this.settle(room);
    } catch (cause) {
      unlessMistake(cause);
      this.#deps.log.warn({ room, cause }, "a change was not queued for webhooks; trying again");
    } finally {
      this.#settling.delete(room);
    }
  }
}

/** Where nobody wants to hear anything. */
export const NO_NEWS: News = {
  receiveEdits: () => {},
  settle: () => Promise.resolve(),
  receiveSnapshot: () => Promise.resolve(),
  receiveDeleted: () => Promise.resolve(),
};

/**
 * Whom a room's news reach here. In a small room everybody is told everything, in the owner's own bytes. In a large one,
 * or while the gateway sheds, members are told in lanes, near where they look. The change from one to the other is made
 * here alone and between two news, so nothing is lost by it, whatever the other gateways do meanwhile.
 */

import type { Millis } from "../../shared/ids.ts";
import { encodeInParts } from "../../shared/news-in-parts.ts";
import type { RoomMode } from "../../shared/wire/frames.ts";
import { encodeNews, type PresenceNews } from "../../shared/wire/presence.ts";
import type { Rectangle } from "../../shared/wire/positions.ts";
import { type LaneName, Lanes, type LanesEffect, type LaneTopic } from "./lanes.ts";
import type { ConnectionId } from "../ports.ts";
import type { Tidings } from "./presence-view.ts";
import { pacesOf } from "./paces.ts";

/** What every member listens to, and what only some do. */
export type ReachTopic = "everybody" | LaneTopic;

export type ReachEffect =
  | { kind: "publish"; topic: ReachTopic; news: Uint8Array; except: ConnectionId | undefined }
  | { kind: "send"; to: ConnectionId; news: Uint8Array }
  | { kind: "listen" | "unlisten"; connection: ConnectionId; topic: ReachTopic };

/** All that there is at that moment. */
export type Everything = { readonly everything: PresenceNews };

/** `shed`: how far down the ladder, by the gateway's own pressure or the owner's. */
export type ReachRule = { readonly mode: RoomMode; readonly shed: number };

type Recipient = { readonly lane: LaneName; readonly view: Rectangle | undefined };

/** Shared by all who look nowhere in particular. */
const LOOKING_NOWHERE: Readonly<Record<LaneName, Recipient>> = {
  editors: { lane: "editors", view: undefined },
  spectators: { lane: "spectators", view: undefined },
};
const FLAT: ReachRule = { mode: "flat", shed: 0 };

export class Reach {
  readonly #recipients = new Map<ConnectionId, Recipient>();
  /** Undefined: everybody is told everything. */
  #lanes: Lanes | undefined;
  #rule = FLAT;
  readonly #view: Everything;

  constructor(view: Everything) {
    this.#view = view;
  }

  /** Nobody has been told the whole yet. */
  get reachesNobody(): boolean {
    return this.#recipients.size === 0;
  }

  /** When there is something to tell. Undefined: not before more news. */
  get dueAt(): Millis | undefined {
    return this.#lanes?.dueAt;
  }

  /** Somebody who has just been told the whole. */
  enter(connection: ConnectionId, lane: LaneName, view: Rectangle | undefined): ReachEffect[] {
    this.#recipients.set(connection, recipientOf(lane, view));
    return [{ kind: "listen", connection, topic: "everybody" }, ...this.#encoded(this.#lanes?.enter(connection, lane, view))];
  }

  exit(connection: ConnectionId): ReachEffect[] {
    if (!this.#recipients.delete(connection)) return [];
    return [{ kind: "unlisten", connection, topic: "everybody" }, ...this.#encoded(this.#lanes?.exit(connection))];
  }

  look(connection: ConnectionId, view: Rectangle | undefined): ReachEffect[] {
    const recipient = this.#recipients.get(connection);
    if (recipient === undefined) return [];
    this.#recipients.set(connection, recipientOf(recipient.lane, view));
    return this.#encoded(this.#lanes?.look(connection, view));
  }

  changeLane(connection: ConnectionId, lane: LaneName): void {
    const recipient = this.#recipients.get(connection);
    if (recipient === undefined || recipient.lane === lane) return;
    this.#recipients.set(connection, recipientOf(lane, recipient.view));
    this.#lanes?.changeLane(connection, lane);
  }

  /** Once the whole has them. */
  tell({ bytes, news }: Tidings, except: ConnectionId | undefined, now: Millis): ReachEffect[] {
    if (this.#lanes === undefined) return this.reachesNobody ? [] : [{ kind: "publish", topic: "everybody", news: bytes, except }];
    if (!news.whole) return this.#encoded(this.#lanes.receiveNews(news, now));
    this.#lanes.receiveWhole(news);
    return this.reachesNobody ? [] : [{ kind: "publish", topic: "everybody", news: bytes, except: undefined }];
  }

  tick(now: Millis): ReachEffect[] {
    return this.#encoded(this.#lanes?.receiveTick(now));
  }

  changeRule(rule: ReachRule, now: Millis): ReachEffect[] {
    const before = this.#rule;
    if (rule.mode === before.mode && rule.shed === before.shed) return [];
    this.#rule = rule;
    if (this.#lanes !== undefined && rule.mode === before.mode && hasLanes(rule))
      return this.#encoded(this.#lanes.changePaces(pacesOf(rule.shed)));
    const effects = this.#leaveLanes();
    if (hasLanes(rule)) effects.push(...this.#enterLanes(rule, now));
    return effects;
  }

  #enterLanes({ mode, shed }: ReachRule, now: Millis): ReachEffect[] {
    const lanes = new Lanes(this.#view.everything, { byView: mode === "hierarchical", paces: pacesOf(shed) }, now);
    this.#lanes = lanes;
    return [...this.#recipients].flatMap(([connection, { lane, view }]) => this.#encoded(lanes.enter(connection, lane, view)));
  }

  /** Nobody knows of everybody any more: all are told the whole. */
  #leaveLanes(): ReachEffect[] {
    const effects = this.#encoded(this.#lanes?.exitAll());
    if (this.#lanes !== undefined)
      effects.push({ kind: "publish", topic: "everybody", news: encodeNews(this.#view.everything), except: undefined });
    this.#lanes = undefined;
    return effects;
  }

  #encoded(effects: readonly LanesEffect[] = []): ReachEffect[] {
    return effects.flatMap((effect): ReachEffect | ReachEffect[] => {
      switch (effect.kind) {
        case "publish":
          return encodeInParts(effect.news).map((news) => ({ kind: "publish", topic: effect.topic, news, except: undefined }));
        case "send":
          return { kind: "send", to: effect.to, news: encodeNews(effect.news) };
        case "tell-whole":
          return this.#tellWhole(effect.to);
        default:
          return effect;
      }
    });
  }

  #tellWhole(to: ConnectionId | undefined): ReachEffect {
    const whole = this.#view.everything;
    if (to !== undefined) return { kind: "send", to, news: encodeNews(whole) };
    this.#lanes?.receiveWhole(whole);
    return { kind: "publish", topic: "everybody", news: encodeNews(whole), except: undefined };
  }
}

function recipientOf(lane: LaneName, view: Rectangle | undefined): Recipient {
  return view === undefined ? LOOKING_NOWHERE[lane] : { lane, view };
}

function hasLanes({ mode, shed }: ReachRule): boolean {
  return mode === "hierarchical" || shed > 0;
}

/**
 * Follows what operations are told of for as long as somebody asks, and keeps the newest: one reader of the stream for
 * however many consoles this gateway answers, and none while there is no console.
 */

import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/clock.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { watchNumbered } from "../../shared/io/watch-operations.ts";
import type { Log } from "../../shared/log.ts";
import { EventsKept } from "../operations/events-kept.ts";
import type { RecentEvents } from "../ports.ts";

/** Of takeovers and of all else. */
const KEPT = { eventsMax: 500, takeoversMax: 500 } as const;
/** Nobody has asked for so long: the page was closed. */
const UNASKED_MS_MAX = 60_000;
/** For those that were kept. */
const FIRST_MS_MAX = 2_000;

type Following = { readonly kept: EventsKept; readonly ready: Promise<void>; readonly end: () => void };

/** `opsEventsMax`: as many as the stream keeps are read, so that takeovers are counted whole. */
export function natsEvents(
  nats: NatsConnection,
  subjects: Subjects,
  { opsEventsMax }: { opsEventsMax: number },
  { clock, log }: { clock: Clock; log: Log },
): RecentEvents {
  let following: Following | undefined;
  let cancelEnd = (): void => {};
  void nats.closed().then(() => cancelEnd());

  const follow = (): Following => {
    const kept = new EventsKept(KEPT);
    const ended = new AbortController();
    let receiveReady = (): void => {};
    const ready = new Promise<void>((resolve) => (receiveReady = resolve));
    const cancelWait = clock.after(FIRST_MS_MAX, receiveReady);
    const started: Following = { kept, ready, end: () => ended.abort() };
    const read = async (): Promise<void> => {
      let newest = 0;
      const begun = (seq: number): void => {
        newest = seq;
        if (seq === 0) receiveReady();
      };
      for await (const { seq, event } of watchNumbered(nats, subjects, opsEventsMax, ended.signal, begun)) {
        kept.receive(seq, event);
        if (seq >= newest) receiveReady();
      }
    };
    const finish = (cause?: unknown): void => {
      cancelWait();
      receiveReady();
      if (following === started) following = undefined; // Whoever asks next has it begun anew.
      if (cause !== undefined && !nats.isClosed() && !nats.isDraining())
        log.warn({ cause }, "operations' events are not followed any more; they are again when somebody asks");
    };
    read().then(() => finish(), finish); // However it ends.
    return started;
  };

  return {
    read: async () => {
      following ??= follow();
      const current = following;
      cancelEnd();
      cancelEnd = clock.after(UNASKED_MS_MAX, () => current.end());
      await current.ready;
      return current.kept;
    },
  };
}
